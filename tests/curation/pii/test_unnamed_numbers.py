"""Chinese numbers that no word names: what is said of them tells, and what they plainly are."""

from __future__ import annotations

import pytest

from h2htalk.curation.pii.structured import find_structured


def found(text: str) -> list[tuple[str, str]]:
    return [(s.type, text[s.start : s.end]) for s in find_structured(text, "zh")]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("初二建的，57483920，头像是只猫", "QQ", "57483920"),
        ("我就一个号，8437296，七位的", "QQ", "8437296"),
        ("密码忘了，那个 483920175 再也上不去", "QQ", "483920175"),
        ("刷进闸机的时候屏幕上跳出来 52295689", "ACCOUNT_NUMBER", "52295689"),
        ("她说打过去就行，622300091827364512", "ACCOUNT_NUMBER", "622300091827364512"),
        ("签到的时候扫不出来，只好手输 2019083344", "ACCOUNT_NUMBER", "2019083344"),
        ("你帮我查下 E30912847 还能不能用", "ACCOUNT_NUMBER", "E30912847"),
        ("燃气编号7001862464，抄表的来了", "ACCOUNT_NUMBER", "7001862464"),
        ("验证码发到 13974932502 去了", "PHONE_NUMBER", "13974932502"),
        ("密码和6217000628588779001一起写着", "CREDIT_CARD", "6217000628588779001"),
    ],
)
def test_what_is_said_of_a_number_tells_its_kind(text: str, kind: str, value: str) -> None:
    assert found(text) == [(kind, value)]


@pytest.mark.parametrize(
    "text",
    [
        "123456789×9=1111111101，好神奇",
        "2的32次方是4294967296",
        "键盘上 147258369 连起来像什么",
        "聊天记录 184562 条，删了好久",
        "95599 打进去全是语音",
        "照片是202311071530拍的",
        "E=mc²，c²=89875517873681764",
        "文件 DSC00982317 我没舍得删",
    ],
)
def test_what_a_number_plainly_is_keeps_it(text: str) -> None:
    assert found(text) == []
