"""Why two greedy answers of one model differ: at the first token that differs, the two were nearly tied, or not."""

from __future__ import annotations

from dataclasses import dataclass

from h2htalk.chat.local.chat_template import ChatTemplate
from h2htalk.chat.local.checkpoints import open_checkpoint
from h2htalk.chat.protocol import Message

# Two engines in float32 differ by less than this in a logit (measured: some 1e-4); logits range over tens.
MARGIN = 0.01


@dataclass(frozen=True, slots=True)
class NearTie:
    """`step`: the first token that differs. `margin`: between the best logit and that of the other's token."""

    step: int
    margin: float


class Judge:
    """The checkpoint in transformers, which says how far apart two tokens were."""

    def __init__(self, folder: str) -> None:
        checkpoint, self._model = open_checkpoint(folder)
        self._stops = checkpoint.stop_tokens()
        self._template = ChatTemplate(checkpoint.tokenizer, folder)

    def explain(self, messages: tuple[Message, ...], other: str, max_tokens: int) -> NearTie | None:
        """Follow transformers' own greedy tokens for as long as they spell `other`, an answer of another engine.

        Returns:
            Where they part, and by how much transformers preferred its token to the best one that goes on
            spelling `other`; None when they do not part at all.
        """
        import torch

        written: list[int] = []
        tokens = torch.tensor([self._template.prompt(messages).tokens.tolist()])
        for step in range(max_tokens):
            with torch.inference_mode():
                logits = self._model(input_ids=tokens).logits[0, -1]
            best = int(logits.argmax())
            if not self._spells(written, best, other):
                order = logits.argsort(descending=True).tolist()
                chosen = next(token for token in order if self._spells(written, token, other))
                return NearTie(step, float(logits[best] - logits[chosen]))
            if best in self._stops:
                return None
            written.append(best)
            tokens = torch.cat((tokens, torch.tensor([[best]])), dim=1)
        return None

    def _spells(self, written: list[int], token: int, text: str) -> bool:
        """Whether the token after those written can be the one that the other engine wrote."""
        if token in self._stops:
            return self._template.decode(written) == text
        spelled = self._template.decode([*written, token])
        # Half a character at the end is shown as a replacement mark.
        return text.startswith(spelled.rstrip("\ufffd")) and spelled != self._template.decode(written)
