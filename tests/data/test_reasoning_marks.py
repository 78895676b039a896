"""Reasoning between the marks of models that are in use is told from the answer; what speaks about marks stays."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from h2htalk.chat.store.reply_marks import mark_warnings
from h2htalk.data.replies.reasoning import split_between, split_reasoning, strip_reasoning
from h2htalk.data.replies.reasoning_marks import opening_mark
from h2htalk.data.responses import Response

R = "The user is sad. I should be warm and short and ask a question."
A = "I hear you, and I am glad you told me. What would help most tonight?"
# More of them; `{R}` and `{A}` stand for reasoning and answer.
FORMS: dict[str, list[Any]] = json.loads(
    Path(__file__).with_name("reasoning_marks.json").read_text(encoding="utf-8")
)
MARKED = [
    f"[THINK]{R}[/THINK]{A}",
    f"<|START_THINKING|>{R}<|END_THINKING|><|START_RESPONSE|>{A}<|END_RESPONSE|>",
    f"<|START_THINKING|>{R}<|END_THINKING|><|START_TEXT|>{A}<|END_TEXT|>",
    f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>{A}",
    f"<|start|>assistant<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>{A}<|return|>",
    f"<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>{A}",
    f"{R}<|end|><|start|>assistant<|channel|>final <|constrain|>json<|message|>{A}",
    f"<|channel|>analysis{R}<|channel|>final{A}",
    f"analysis{R}assistantfinal{A}",
    f"analysis\n{R}\nassistantfinal\n{A}",
    f"<reasoning>\n{R}\n</reasoning>\n{A}",
    f"<thought>\n{R}\n</thought>\n{A}",
    f"<thought>{R}</thought>{A}",
    f"<Thought>\n{R}\n</Thought>\n\n<Output>\n{A}\n</Output>",
    f"<think>\n{R}\n</think>\n<answer>\n{A}\n</answer>",
    f"<think>{R}</think><answer>{A}",
    f"<seed:think>{R}</seed:think>{A}",
    f"{R}</seed:think>{A}",
    f"<unused94>thought\n{R}<unused95>{A}",
    f"◁think▷{R}◁/think▷{A}",
    f"<|begin_of_thought|>{R}<|end_of_thought|><|begin_of_solution|>{A}<|end_of_solution|>",
    f"{R}[/THINK]{A}",
    f"{R}\n</think>\n\n{A}",
    f"<|channel>thought\n{R}<channel|>{A}",
    f"<|inner_prefix|>{R}<|inner_suffix|>{A}",
    f"[unused16]{R}[unused17]{A}",
    f"Here is my thought process: {R} Here is my response: {A}",
    f"Here's my thought process:\n{R}\n\nHere's my response:\n{A}",
    f"<think>\n{R}\n</think>\n\n<response>\n{A}\n</response>",
    f"<scratchpad>\n{R}\n</scratchpad>\n\n{A}",
    f"<analysis>{R}</analysis>\n\n{A}",
    f"<longcat_think>{R}</longcat_think>\n{A}",
    f"<think>{R}</think>\n\n<|begin_of_box|>{A}<|end_of_box|>",
    f"<inner_thoughts>{R}</inner_thoughts> {A}",
    f"<思考>{R}</思考>{A}",
    f"<THOUGHT>\n{R}\n</THOUGHT>\n<response>{A}</response>",
    f"<think>{R} </think>{A}",
    f"<thinking>\n{R}\n</thinking>\n\n{A}",
    f"<think></think>\n<reasoning>{R}</reasoning>\n{A}",
    f"\n\n[THINK]\n{R}\n[/THINK]\n\n{A}",
    f'<think budget="200">{R}</think>{A}',
    f"<thinking type='internal' lang=\"en\">\n{R}\n</thinking>\n{A}",
    f"< think >{R}</ think >{A}",
    f"&lt;think&gt;{R}&lt;/think&gt;{A}",
    f"＜think＞{R}＜/think＞{A}",
    f"[think]{R}[/think]{A}",
    f"[THINKING]\n{R}\n[/THINKING]\n{A}",
    f"<deepthink>{R}</deepthink>{A}",
    f"<model_thoughts>\n{R}\n</model_thoughts>\n{A}",
    f"<think_fast>{R}</think_fast>\n{A}",
    f'<details type="reasoning" done="true" duration="3">\n{R}\n</details>\n{A}',
    f"```thinking\n{R}\n```\n{A}",
    f"Thinking...\n{R}\n...done thinking.\n\n{A}",
    f"{R}\n</reasoning>\n{A}",
    f"{R}</thought>\n\n{A}",
    f"<|assistant|>\n<think>{R}</think>\n{A}",
    f"Here are my reasoning steps:\n{R}\n[BEGIN FINAL RESPONSE]\n{A}\n[END FINAL RESPONSE]",
    f"{R}\n[BEGIN FINAL RESPONSE]\n{A}\n[END FINAL RESPONSE]",
    f"Here are my reasoning steps:\n{R}\n[BEGIN FINAL RESPONSE]\n{A}",
    f"<|think|>{R}<|end|><|begin|>assistant<|content|>{A}",
    f"<|think|>{R}<|end|>\n<|begin|>assistant<|content|>{A}<|end|>",
    f"<|begin|>assistant<|think|>{R}<|end|><|begin|>assistant<|content|>{A}",
    f"<|think|>{R}<|/think|>{A}",
    f"<|cot|>{R}<|/cot|>{A}",
    f"<|thinking_start|>{R}<|thinking_end|>{A}",
    f"<|begin_of_think|>{R}<|end_of_think|>{A}",
    f"<start_of_thought>{R}<end_of_thought>{A}",
    f"<start_of_thinking>\n{R}\n<end_of_thinking>\n{A}",
    f"think\n{R}\nanswer\n{A}",
    f"<|im_start|>think\n{R}\n<|im_start|>answer\n{A}",
    f"Thought: {R}\nFinal Answer: {A}",
    f"Thinking process:\n{R}\n\nFinal response:\n{A}",
    f"**Thinking:**\n{R}\n\n**Response:**\n{A}",
    f"**Reasoning**\n{R}\n\n**Final Answer**\n{A}",
    f"【思考】{R}【/思考】{A}",
    f"【思考过程】\n{R}\n【回答】\n{A}",
    f"思考过程：\n{R}\n\n回答：\n{A}",
    f"<details>\n<summary>Thinking</summary>\n{R}\n</details>\n{A}",
    f"<SUMMARY>{R}\n<CONCLUSION>{A}</CONCLUSION>",
    f"<think>{R}<think/>{A}",
    f"<think>\n{R}\n<think>\n{A}",
    f"<|channel|>analysis<|message|>{R}<|end|><|start|>assistant<|channel|>commentary<|message|>{A}<|end|>",
]
SPOKEN_OF = [
    "[THINK] about one small thing that you can do tonight.",
    "[Think] of one small thing that you can do tonight.",
    "Thinking... that is what I do when it rains. And you?",
    "You wrote </thought> in your note, as if it were over.",
    "I rethink <nothing> and you?",
    "```\nyour poem\n```\nI like it.",
    "2 &lt; 3, and you are not alone.",
    "Models write [THINK] first and then the answer.",
    "Some models write `<think>` and `</think>` around it.",
    "The tag [THINK] opens a block and [/THINK] closes it.",
    "I use <reasoning> and </reasoning> in my notes.",
    "<reasoning> and </reasoning> are tags.",
    "My analysis: you are tired. assistantfinal is no word.",
    "analysis paralysis is real.",
    "analysis is what I studied, and I loved it.",
    "Here is my thought process: I would rest first.",
    "I gave it some thought.\n\nthought by thought we will find out.",
    "He wrote <answer> there.",
    "My final: </thought> is odd.",
    "The model prints <|channel|> as text, does it?",
    "标签 [THINK] 是什么？",
    "“<think>” is a tag.",
    "I like the box [x] and [THINK ABOUT IT].",
    "Analysis shows",
    "Put it in <thought> bubbles, like in comics: <thought>hm</thought>.",
    "<3 you",
    "Your <response> matters",
    "It closes with [/THINK] then it answers.",
    "It ends at </think>, I believe.",
    "<thought>\nI love you,\nas rain loves the sea.\n</thought>",
    "Here is a poem:\n<thought>\nI love you\n</thought>\nWhat do you think?",
    "<monologue>\nTo be or not to be\n</monologue>",
    "Your part:\n\n<monologue>\nTo be or not to be\n</monologue>\n\nShall we rehearse it?",
    "```thoughts\nI am enough.\n```",
    "Write this every morning:\n```thoughts\nI am enough.\n```\nIt may help.",
    "<思考>\n今晚的月亮\n</思考>",
    "A trick: write <think>...</think> around it",
    "A trick: put <think>...</think> around it, then ask again.",
    'Someone wrote: "<think>" and I laughed. </think>',
    "Models begin with `<think>` and end with </think>",
    "Try this tag: <think>hm</think> and tell me.",
    "Sure. It begins with: <think>",
    "Here are my reasoning steps: sleep first, then talk to him.",
    "Here are my reasoning steps:\n1. Sleep.\n2. Talk to him.",
    "think\nof the sea, and breathe.",
    "Thought: you deserve a rest.",
    "Reasoning: you were tired.\nMy answer: rest.",
    "【思考】一下，你真的想去吗？",
    "思考过程：\n先睡觉，再谈。",
    "**Thinking** of you today. How did it go?",
    "<details>\n<summary>The plan</summary>\nRest.\n</details>\nShall we?",
    "It ended with\n</reasoning>\n",
]
CUT_OFF = [
    f"[THINK]{R}",
    f"<reasoning>\n{R}",
    f"<thought>{R}",
    f"analysis{R}",
    f"<|channel|>analysis<|message|>{R}",
    f"<|START_THINKING|>{R}",
    "<think>\n" + R,
]


@pytest.mark.parametrize("text", MARKED + FORMS["marked"])
def test_reasoning_between_known_marks_is_no_part_of_the_answer(text: str) -> None:
    """It was scored as the companion's words, and most of it raised the score."""
    text = text.replace("{R}", R).replace("{A}", A)
    assert split_reasoning(text) == (A, R)
    assert Response("a", 0, text).answer == strip_reasoning(text) == A


@pytest.mark.parametrize("text", SPOKEN_OF + FORMS["spoken_of"])
def test_a_reply_that_speaks_about_a_mark_stays_whole(text: str) -> None:
    assert split_reasoning(text) == (text.strip(), None)


@pytest.mark.parametrize("text", CUT_OFF)
def test_reasoning_that_was_cut_before_it_closed_leaves_no_answer(text: str) -> None:
    assert split_reasoning(text) == ("", R)


def test_what_gpt_oss_tells_the_user_in_its_channel_of_commentary_is_an_answer_where_no_other_is() -> (
    None
):
    """Such a reply was empty."""
    assert split_reasoning(f"<|channel|>commentary<|message|>{A}") == (A, "")
    called = f"<|channel|>commentary to=functions.look_up <|constrain|>json<|message|>{R}<|call|>"
    assert split_reasoning(called) == ("", R)
    both = f"<|channel|>commentary<|message|>{R}<|end|><|start|>assistant<|channel|>final<|message|>{A}"
    assert split_reasoning(both) == (A, R)


def test_marks_that_the_user_names() -> None:
    assert split_between(f"<plan>{R}</plan>\n{A}", "<plan>", "</plan>") == (A, R)
    assert split_between(f"{R}</plan>{A}", "<plan>", "</plan>") == (A, R)
    assert split_between(f"{R}###{A}", "", "###") == (A, R)
    assert split_between(f"<plan>{R}", "<plan>", "</plan>") == ("", R)
    assert split_between(A, "<plan>", "</plan>") == (A, None)


HOSTILE = (
    "\n" * 10**6,
    "\n<thought>" * 10**5,
    "<|start|>" + " " * 10**6,
    "[THINK] " * 10**5,
    "<answer>" + "<" * 10**6,
)


@pytest.mark.parametrize("text", HOSTILE)
def test_a_reply_of_a_megabyte_of_marks_is_read_at_once(text: str) -> None:
    started = time.process_time()
    split_reasoning(text)
    assert time.process_time() - started < 8


@pytest.mark.parametrize(
    ("answer", "mark"),
    [
        ("<plan>\nShe is sad.", "<plan>"),
        ("[PLAN] She is sad.", "[PLAN]"),
        ("**Thinking:** she is sad.", "**Thinking:**"),
        ("thought\nThe user is sad.", "thought"),
        ("<|assistant|>Hi", "<|assistant|>"),
        ("思考过程：\n她很难过。", "思考过程："),
        ("think\nThe user is sad.", "think"),
        ("Here are my reasoning steps:\nShe is sad.", "Here are my reasoning steps:"),
        ("Thought: she is sad.\nAnswer: I hear you.", "Thought:"),
        ("【思考】她很难过。", "【思考】"),
        ("（思考：她很难过）\n我在。", "（思考："),
        *(
            (text, "")
            for text in ("<p>Hi</p>", "I am here.", "<3 you", "[smiles] Hi", "thought so", "")
        ),
    ],
)
def test_the_mark_that_an_answer_begins_with(answer: str, mark: str) -> None:
    assert opening_mark(answer) == mark


@pytest.mark.parametrize(("answer", "mark"), FORMS["warned_of"])
def test_headings_and_other_openings_of_prompts_are_marks(answer: str, mark: str) -> None:
    assert opening_mark(answer) == mark


@pytest.mark.parametrize("answer", FORMS["not_warned_of"])
def test_role_play_and_words_of_thought_are_no_marks(answer: str) -> None:
    assert opening_mark(answer) == ""


def test_several_replies_with_one_unknown_mark_are_warned_of_and_those_that_were_asked_for_are_not() -> (
    None
):
    replies = [("<plan>She is sad.</plan>I hear you.", ["I hear you."])] * 3 + [
        ("I hear you.", ["Hi."])
    ] * 40
    (warning,) = mark_warnings(replies, "server")
    assert warning.startswith("3 of 43 replies begin with <plan>: ")
    assert "--engine-option 'think=<plan>,</plan>'" in warning
    assert "take it out of the replies" in next(iter(mark_warnings(replies, "imported")))
    assert "reasoning_parser" in next(iter(mark_warnings(replies, "vllm")))
    assert not list(mark_warnings(replies[1:], "server"))
    assert not list(mark_warnings([("[LIKES] tea", ["[LIKES] coffee"])] * 9, "server"))


@pytest.mark.parametrize("mark", ["<tool_call>", "<function=look_up>", "[TOOL_CALLS]"])
def test_calls_of_tools_in_the_text_are_not_called_reasoning(mark: str) -> None:
    """The advice was to name `<tool_call>` as the mark of reasoning."""
    replies = [(f'{mark}{{"name": "look_up"}}', ["I hear you."])] * 3 + [
        ("I hear you.", ["Hi."])
    ] * 9
    (warning,) = mark_warnings(replies, "server")
    assert warning.startswith(f"3 of 12 replies begin with {mark}: a call of a tool")
    assert "think=" not in warning


def test_marks_of_a_chat_template_in_replies_are_counted_in_one_warning() -> None:
    """Such a reply goes on with a turn of the user, which was scored without a word."""
    replies = [
        ("I hear you.<|im_end|>\n<|im_start|>user\nThanks", ["Hi."]),
        ("<|eot_id|>I hear you.", ["Hi."]),
        ("I hear you.<end_of_turn>", ["Hi."]),
        ("Models end with <|im_end|>.", ["It is <|im_end|>."]),
        *[("I hear you. <3", ["Hi."])] * 6,
    ]
    (warning,) = mark_warnings(replies, "server")
    assert warning.startswith("3 of 10 replies contain marks of a chat template: ")
    assert "<|im_end|> (1)" in warning
    assert not list(mark_warnings(replies[3:], "server"))


@pytest.mark.parametrize("mark", ['<think budget="9">', "<THINK>", "[think]", "&lt;think&gt;"])
def test_a_block_of_another_spelling_that_was_cut_leaves_no_answer(mark: str) -> None:
    answer, thought = split_reasoning(f"{mark}{R}")
    assert (answer, thought) == (("", R) if mark != "[think]" else (f"{mark}{R}", None))


def test_blocks_of_different_marks_after_each_other_are_all_reasoning() -> None:
    text = f"<thinking>{R}</thinking>\n<reflection>It is short.</reflection>\n<output>{A}</output>"
    answer, thought = split_reasoning(text)
    assert answer == A
    assert sorted((thought or "").split("\n\n")) == ["It is short.", R]
