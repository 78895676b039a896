"""A user's own recognisers: a registry read strictly, real spaCy and transformers models, GLiNER's calls."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.command_line import h2htalk
from support.curations import source

pytest.importorskip("spacy", reason="the curation extra is not installed")

from h2htalk.curation.anonymize.stage import registry_fingerprint
from h2htalk.curation.curate import curate
from h2htalk.curation.release.content import InventedValues
from h2htalk.curation.workspace import Workspace
from h2htalk.detect.personal.engine.analyzer import chat_analyzer, find_in_dialogue
from h2htalk.detect.personal.engine.user_recognizers import (
    UserRegistry,
    read_registry,
    unread_languages,
)
from h2htalk.errors import ConfigError

STAFF = """
recognizers:
  - name: Staff
    supported_entity: STAFF_ID
    supported_languages: [{language: zh, context: [工号]}, {language: en, context: [staff]}]
    patterns: [{name: staff number, regex: "(?<![0-9A-Za-z])ST-[0-9]{5}(?![0-9])", score: 0.3}]
"""
CLINICS = """
recognizers:
  - {name: Clinics, supported_entity: CLINIC, deny_list: [Blue Heron House, 蓝鹭之家]}
allow_list: [Talia]
"""


def registry(folder: Path, content: str, *, trusted: bool = False) -> UserRegistry:
    path = folder / "my.yaml"
    path.write_text(content, encoding="utf-8")
    return read_registry(path, trusted=trusted)


def found(texts: list[str], language: str, users: UserRegistry) -> list[list[tuple[str, str, str]]]:
    spans = find_in_dialogue(texts, language, users=users).spans
    return [
        [(said[s.start : s.end], s.type, s.found_by) for s in own]
        for said, own in zip(texts, spans, strict=True)
    ]


def test_what_a_users_patterns_and_words_find(tmp_path: Path) -> None:
    users = registry(tmp_path, STAFF)
    far = "一，二，三，四，五，六"
    assert found(["我的工号是ST-12345。", f"{far} ST-12345？", f"{far} ST-99999"], "zh", users) == [
        [("ST-12345", "STAFF_ID", "Staff, pattern staff number, context word 工号")],
        [("ST-12345", "STAFF_ID", "RepeatedValue")],
        [],
    ]
    assert found(["my staff number: ST-12345"], "en", users)[0][0][:2] == ("ST-12345", "STAFF_ID")
    # Words are found in Chinese too, and allowed names stay.
    users = registry(tmp_path, CLINICS)
    assert found(["我在蓝鹭之家见过他"], "zh", users) == [
        [("蓝鹭之家", "CLINIC", "Clinics, pattern deny_list")]
    ]
    assert found(
        ["at blue heron house, not blue heron houses", "my friend Talia"], "en", users
    ) == [
        [("blue heron house", "CLINIC", "Clinics, pattern deny_list")],
        [],
    ]
    # A user's type stays whole inside the package's.
    users = registry(tmp_path, STAFF.replace("0.3", "0.6"))
    spans = found(["I live at 12 Oak Street, staff ST-12345"], "en", users)[0]
    assert [(text, kind) for text, kind, _ in spans] == [
        ("12 Oak Street", "ADDRESS"),
        ("ST-12345", "STAFF_ID"),
    ]
    # A match over two messages is cut between them.
    pattern = "{name: p, regex: 'ab.+cd', score: 1.0}"
    users = registry(
        tmp_path, f"recognizers: [{{name: X, supported_entity: XX, patterns: [{pattern}]}}]"
    )
    assert [[one[0] for one in each] for each in found(["xx ab", "", "cd yy"], "en", users)] == [
        ["ab"],
        [],
        ["cd"],
    ]
    # Thousands of words were refused as slow.
    words = ", ".join(f"w{n}x" for n in range(5000))
    users = registry(
        tmp_path,
        f"recognizers: [{{name: X, supported_entity: XX, deny_list: [{words}, 蓝鹭之家]}}]",
    )
    (spans,) = found(["w7x and w4999x, w77xx 在蓝鹭之家"], "en", users)
    assert [text for text, kind, _ in spans if kind == "XX"] == ["w7x", "w4999x", "蓝鹭之家"]
    # Presidio's own recognizers are named by their class.
    users = registry(
        tmp_path, "recognizers: [{name: Poland, class_name: PlPeselRecognizer, context: [pesel]}]"
    )
    (span, *_), *_ = found(["pesel 44051401359"], "en", users)
    assert span[1:] == ("PL_PESEL", "Poland, pattern PESEL, context word pesel")


def test_what_a_user_lists_precedes_the_packages_lists(tmp_path: Path) -> None:
    """A listed place stayed, without a word, because a public person's name begins it; a phone writes it curly."""
    users = registry(
        tmp_path,
        'recognizers: [{name: X, supported_entity: ORGANIZATION, deny_list: ["St Paul\'s centre"]}]',
    )
    texts = ["a group at St Paul's centre", "the hall of St Paul’s centre"]
    straight, curly = found(texts, "en", users)
    assert straight[0][:2] == ("St Paul's centre", "ORGANIZATION")
    assert curly[0][:2] == ("St Paul’s centre", "ORGANIZATION")


@pytest.mark.parametrize(
    ("word", "text", "language", "names"),
    [
        ("Megan", "My sister Megan wants me to come", "en", ["Megan"]),
        ("Megan", "I live with Megan Price", "en", ["Megan", " Price"]),
        ("李", "李老师说我可以", "zh", ["李"]),
    ],
)
def test_a_form_of_address_beside_a_listed_name_stays(
    tmp_path: Path, word: str, text: str, language: str, names: list[str]
) -> None:
    """ "My sister Megan" became "My kiersten Sarah"."""
    users = registry(
        tmp_path, f"recognizers: [{{name: X, supported_entity: PERSON, deny_list: [{word}]}}]"
    )
    (spans,) = found([text], language, users)
    assert [name for name, _, _ in spans] == names


def test_an_allowed_text_is_no_address(tmp_path: Path) -> None:
    text = "we sat at 3, Coast Path"
    assert found([text], "en", UserRegistry()) != [[]]
    assert found([text], "en", registry(tmp_path, "allow_list: ['3, coast path']")) == [[]]


def test_a_recognizer_that_reads_no_language_of_the_sources_is_named(tmp_path: Path) -> None:
    users = registry(tmp_path, STAFF.replace(", {language: en, context: [staff]}", ""))
    (message,) = unread_languages(users, {"en"})
    assert "entry 1 (Staff): reads no language of the sources" in message
    assert unread_languages(users, {"en", "zh"}) == []


def test_names_that_a_registry_allows_stay_in_a_release(tmp_path: Path) -> None:
    """The gate of personal data stopped a release for them."""
    (tmp_path / "my.yaml").write_text("allow_list: [Zorblo Haven]\n")
    (tmp_path / "raw.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hi."}]}\n'
    )
    spec = f'workspace = "out"\n{source("mine", "raw.jsonl")}[anonymize]\nallow = ["HR"]\nrecognizers = "my.yaml"\n'
    (tmp_path / "spec.toml").write_text(spec)
    curate(tmp_path / "spec.toml", stages=["gather", "anonymize"])
    values = InventedValues.of_workspace(Workspace(tmp_path / "out"), ())
    assert values.allow == ("HR", "Zorblo Haven")


BACKTRACKS = "recognizers: [{name: X, supported_entity: XX, patterns: [{name: p, regex: '(a+)+$', score: 1}]}]"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("recogniser: []", r"recogniser: no such field; did you mean 'recognizers'"),
        (
            "recognizers: [{name: A, supported_entity: AB, pattern: []}]",
            r"entry 1 \(A\): pattern: no such field",
        ),
        ("recognizers: [{name: A, class: 'os:system'}]", "trust_recognizers"),
        ("recognizers: [{name: A, class_name: PhoneRecognizer}]", "neither patterns nor a model"),
        ("recognizers: [{name: A, class_name: [GLiNERRecognizer]}]", "class_name: Presidio has no"),
        ("recognizers: [{name: A, enabled: false}]", "the file is empty"),
        (
            "recognizers: [{name: A, patterns: [{name: p, regex: x, score: 1}]}]",
            r"\(ValueError: Field required\)",
        ),
        ("[" * 5000, "cannot be read as YAML"),
        # What would find nothing, and was read without a word.
        (
            "recognizers: [{name: A, supported_entity: AB, deny_list: [blob], deny_list_score: 0.3}]",
            r"entry 1 \(A\): deny_list_score: 0.3 is below 0.5 without context words",
        ),
        (
            "recognizers: [{name: A, supported_entity: AB, context: [b], patterns: [{name: p, regex: x, score: 0.1}]}]",
            "pattern 'p': 0.1 is below 0.5 beside a context word",
        ),
        (
            "recognizers: [{name: A, supported_entity: AB, deny_list: blob}]",
            "deny_list must be a list of words",
        ),
        (
            "{recognizers: [{name: A, supported_entity: AB, deny_list: [Blob]}], allow_list: [blob]}",
            "'Blob' stays by allow_list or anonymize.allow",
        ),
        (
            "recognizers: [{name: A, class_name: SpacyRecognizer, model_name: m, deny_list: [blob]}]",
            "deny_list does nothing beside the model of SpacyRecognizer",
        ),
        (BACKTRACKS, "recognizer 'X': a pattern takes too long"),
        (
            "recognizers: [{name: A, class_name: SpacyRecognizer, model_name: no_such}]",
            "python -m spacy download",
        ),
    ],
)
def test_a_wrong_registry_is_an_error_that_names_the_place(
    tmp_path: Path, content: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        chat_analyzer("zh", registry(tmp_path, content))


WARD = """
from presidio_analyzer import EntityRecognizer, RecognizerResult

class WardRecognizer(EntityRecognizer):
    def __init__(self, word, supported_language):
        self.word = word
        super().__init__(["WARD"], name="Ward", supported_language=supported_language)
    def load(self): pass
    def analyze(self, text, entities, nlp_artifacts=None):
        if self.word == "fail":
            raise RuntimeError(text)
        at = text.find(self.word)
        return [RecognizerResult("WARD", at, at + len(self.word), 0.9), RecognizerResult("OTHER", 0, 1, 0.9)]
"""


def test_a_trusted_class_beside_the_registry_hides_no_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ward_of_test", "colorsys"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "ward_of_test.py").write_text(f"import colorsys\n{WARD}")
    (tmp_path / "colorsys.py").write_text("raise SystemExit")
    before = list(sys.path)
    content = (
        "recognizers: [{{name: W, class: 'ward_of_test:WardRecognizer', params: {{word: {}}}}}]"
    )
    users = registry(tmp_path, content.format("maple"), trusted=True)
    assert found(["the one on maple"], "en", users) == [[("maple", "WARD", "Ward")]]
    assert sys.path == before
    users = registry(tmp_path, content.format("fail"), trusted=True)
    with pytest.raises(ConfigError, match="recognizer 'Ward' failed: RuntimeError") as raised:
        found(["my secret"], "en", users)
    assert "secret" not in str(raised.value)


def test_a_module_beside_an_untrusted_registry_was_run_by_a_dry_run(tmp_path: Path) -> None:
    for name in ("spacy", "model_of_test"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    registry(
        tmp_path, "recognizers: [{name: X, class_name: SpacyRecognizer, model_name: model_of_test}]"
    )
    (tmp_path / "raw.jsonl").write_text('{"messages": [{"role": "user", "content": "Hello."}]}\n')
    spec = f'workspace = "out"\n{source("mine", "raw.jsonl")}[anonymize]\nrecognizers = "my.yaml"\n'
    (tmp_path / "spec.toml").write_text(spec)
    done = h2htalk(
        "curate",
        "run",
        tmp_path / "spec.toml",
        "--dry-run",
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert not (tmp_path / "ran").exists()


def test_a_spacy_pipeline_is_read_from_its_folder(tmp_path: Path) -> None:
    import spacy

    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler", name="ner").add_patterns(
        [{"label": "PERSON", "pattern": "zorblo"}]
    )
    nlp.to_disk(tmp_path / "zorblo_names")
    entry = "name: model, class_name: SpacyRecognizer, supported_languages: [en], model_name: ./zorblo_names"
    users = registry(tmp_path, f"recognizers: [{{{entry}}}]")
    assert found(["a very zorblo thing"], "en", users) == [[("zorblo", "PERSON", "model")]]
    assert registry_fingerprint(users)[1].startswith("hf:zorblo_names, sha256 ")


@pytest.mark.local
def test_a_token_classifier_of_transformers_is_read(tmp_path: Path) -> None:
    """One with random weights: what it labels is chance, but it labels, and its places are those of the text."""
    torch = pytest.importorskip("torch", reason="transformers models need torch")
    transformers = pytest.importorskip("transformers", reason="transformers models need it")
    folder = tmp_path / "model"
    words = ["[UNK]", "[PAD]", "tom", "met", "ann", "in", "paris"]
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(
        tokenizers.models.WordLevel({w: n for n, w in enumerate(words)}, "[UNK]")
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", model_max_length=512
    ).save_pretrained(folder)
    torch.manual_seed(1)
    sizes = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
    }
    labels = {0: "B-first_name", 1: "B-other"}
    config = transformers.BertConfig(vocab_size=len(words), num_labels=2, id2label=labels, **sizes)
    transformers.BertForTokenClassification(config).save_pretrained(folder)
    content = """recognizers: [{name: tiny, class_name: HuggingFaceNerRecognizer, supported_languages: [en],
  model_name: ./model, label_mapping: {first_name: PERSON}, threshold: 0.0}]"""
    analyzer = chat_analyzer("en", registry(tmp_path, content))
    (recognizer,) = [r for r in analyzer.registry.recognizers if r.name == "tiny"]
    text = "tom met ann in paris"
    results = recognizer.analyze(text, ["PERSON"])
    assert results
    assert {r.entity_type for r in results} == {"PERSON"}
    assert all(0 <= r.start < r.end <= len(text) for r in results)


class _Gliner:
    """Takes GLiNER's calls and finds one name."""

    @classmethod
    def from_pretrained(cls, name: str, **_: Any) -> _Gliner:
        if name == "missing":
            raise OSError("No such file or directory: 'missing'")
        return cls()

    def predict_entities(self, text: str, labels: list[str], **_: Any) -> list[dict[str, Any]]:
        assert labels == ["person"]
        assert len(text) <= 400
        if "fail" in text:
            raise RuntimeError("CUDA out of memory")
        at = text.find("Zorblo")
        # One half, the threshold, with the noise of 32 bits.
        return (
            [{"start": at, "end": at + 6, "label": "person", "score": 0.49999997}]
            if at >= 0
            else []
        )


def test_gliner_is_asked_for_its_labels_and_may_stop_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module: Any = ModuleType("gliner")
    module.GLiNER = _Gliner
    monkeypatch.setitem(sys.modules, "gliner", module)
    content = """recognizers:
  - {name: gliner, class_name: GLiNERRecognizer, model_name: some/model, entity_mapping: {person: PERSON}}"""
    users = registry(tmp_path, content)
    text = "well. " * 400 + "so zorblo, the Zorblo, mail a.b@gmail.com"
    assert ("Zorblo", "PERSON", "gliner") in found([text], "en", users)[0]
    with pytest.raises(ConfigError, match="recognizer 'gliner' failed: RuntimeError"):
        found(["fail"], "en", users)
    with pytest.raises(ConfigError, match="cannot be loaded"):
        chat_analyzer("en", registry(tmp_path, content.replace("some/model", "missing")))
