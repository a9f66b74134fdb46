"""Which values are searched for, in which pieces, under which names (contract C5, C6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from supervisor.sansio.needles import LARGEST_BYTES, NeedleSet, credential_values, refusal


def names(needles: NeedleSet) -> set[str]:
    """Return the names that markers can get."""
    return {needle.name for needle in needles.needles}


@given(st.dictionaries(st.text(max_size=70), st.text(min_size=1, max_size=300) | st.binary(max_size=300), max_size=3))
def test_needles_are_whole_characters_of_bounded_length(secrets: dict[str, str | bytes]) -> None:
    """64 bytes and valid UTF-8, none twice, none with a control, for any name and value."""
    needles = NeedleSet.build(secrets)
    for value in needles.values:
        text = value.decode()
        assert len(value) <= 64
        assert not any((ord(char) < 32 and char not in "\t\n") or 0x7F <= ord(char) < 0xA0 for char in text)
    assert len(set(needles.values)) == len(needles.values)
    assert needles.longest == max(map(len, needles.values), default=0)


@given(st.text("abé密", min_size=60, max_size=300))
def test_the_pieces_of_a_long_value_cover_it(value: str) -> None:
    """Side by side from the beginning, and the last is the value's end."""
    secret = "x1" + value + "9z"
    pieces = [n for n in NeedleSet.build({"A": secret}).needles if n.value in secret.encode()]
    covered = [False] * len(secret.encode())
    for piece in pieces:
        at = secret.encode().find(piece.value)
        while at >= 0:
            covered[at : at + len(piece.value)] = [True] * len(piece.value)
            at = secret.encode().find(piece.value, at + 1)
    assert all(covered)
    assert not any(piece.following and not secret.encode().count(piece.value + piece.following[0]) for piece in pieces)


def test_the_last_piece_is_the_last_64_bytes() -> None:
    """So an end of a long secret is found whatever its length is."""
    value = "".join(f"{number:04d}" for number in range(50))
    plain = [needle for needle in NeedleSet.build({"A": value}).needles if needle.value.decode() in value]
    assert [needle.value.decode() for needle in plain] == [value[:64], value[64:128], value[128:192], value[-64:]]
    after = [value[64:127], value[128:191], value[192:], ""]
    assert ["".join(text.decode() for text in needle.following) for needle in plain] == after


def test_equal_pieces_are_one_needle_that_knows_all_that_may_follow() -> None:
    """Under the first name, wherever else the piece stands."""
    needles = NeedleSet.build({"FIRST": "Q7" * 32, "BIG": "Q7" * 64 + "end"})
    same = [needle for needle in needles.needles if needle.value == b"Q7" * 32]
    assert [(needle.name, sorted(needle.following)) for needle in same] == [("FIRST", [b"Q7" * 31 + b"Q", b"end"])]


def test_the_first_source_names_a_value_and_each_value_of_a_name_counts() -> None:
    """Needle order is the order of the sources; two values under one name are both searched for."""
    needles = NeedleSet.build({"A": "alpha-secret-1"}, {"B": "alpha-secret-1", "A": "other-secret-2"})
    assert names(needles) == {"A"}
    assert {b"alpha-secret-1", b"other-secret-2"} <= set(needles.values)


def test_values_are_searched_for_as_output_shows_them() -> None:
    """The same decoding and stripping, surrounding white space left off; an incomplete last character depends."""
    needles = NeedleSet.build({"A": "  first\r\n\x1b[1msecond\0\n", "B": b"caf\xe9-secret-\xe4\xbd"})
    assert b"first\nsecond" in needles.values
    assert "caf\ufffd-secret-".encode() in needles.values


def test_lines_of_a_secret_are_needles_from_12_characters_on() -> None:
    """Shorter lines, the BEGIN and END of a key block and common lines are not; a long line is cut."""
    lines = ["-----BEGIN PRIVATE KEY-----", "  exactly12chr", "only11chars", "=" * 20, "L0ng" * 20 + "tail"]
    values = NeedleSet.build({"KEY": "\n".join(lines)}).values
    assert b"exactly12chr" in values
    assert (b"L0ng" * 20 + b"tail")[-64:] in values
    assert not {b"only11chars", lines[0].encode(), b"=" * 20} & set(values)


def test_a_run_of_one_character_inside_a_secret_is_no_needle() -> None:
    """It would hide every ruler in the output."""
    needles = NeedleSet.build({"A": "start-" + "x" * 58 + "=" * 64 + "-the-end-of-it"})
    assert b"=" * 64 not in needles.values


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("short77", "shorter than 8 characters"),
        ("密码ключ7", "shorter than 8 characters"),
        ("********", "one repeated character"),
        ("ChangeMe", "a common word"),
        ("localhost", "a common word"),
        ("123456789", "a number of fewer than 10 digits"),
        ("-12345678", "a number of fewer than 10 digits"),
        ("/usr/bin", "a plain path"),
        ("/run/secrets/db_password", "a plain path"),
        ("~/.ssh/id_rsa.pub", "a plain path"),
        ("hunter2hunter2", None),
        ("1234567890", None),
        ("ключ密码9é!", None),
        ("/Zx81k+Qm/4Ab9pLw0", None),
        ("/kLmNoPqRsT/uVwXyZaB", None),
        ("correct horse", None),
    ],
)
def test_values_that_ordinary_text_contains_are_refused(value: str, reason: str | None) -> None:
    """By name and reason; what is not refused has needles."""
    needles = NeedleSet.build({"NAME": value})
    assert refusal(value) == reason
    assert needles.refused == (() if reason is None else (f"NAME: {reason}",))
    assert bool(needles.needles) is (reason is None)


def test_a_huge_value_is_cut_and_named() -> None:
    """The number of needles is bounded, and what is not searched for is said."""
    needles = NeedleSet.build({"A": "".join(f"{number:05d}-" for number in range(20_000))})
    assert needles.refused == (f"A: only the first {LARGEST_BYTES} bytes are searched for",)
    assert len(needles.needles) < 3000


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("OPENAI_API_KEY", "hunter2hunter2", "OPENAI_API_KEY"),
        ("db.pass-2", "hunter2hunter2", "db.pass-2"),
        ("with space", "hunter2hunter2", "secret"),
        ("new\nline", "hunter2hunter2", "secret"),
        ("]x", "hunter2hunter2", "secret"),
        ("", "hunter2hunter2", "secret"),
        ("A" * 64, "hunter2hunter2", "A" * 64),
        ("A" * 65, "hunter2hunter2", "secret"),
        ("hunter2hunter2", "hunter2hunter2", "secret"),
        ("hunter2", "hunter2", "secret"),
        ("KEY_1", "1", "KEY_1"),
    ],
)
def test_a_name_is_a_plain_word_that_shows_no_value(name: str, value: str, shown: str) -> None:
    """Names come from callers too, who may have only values to give (contract C6)."""
    needles = NeedleSet.build({name: value})
    assert names(needles) | {entry.partition(":")[0] for entry in needles.refused} == {shown}


def test_a_name_that_shows_another_secret_is_replaced() -> None:
    """Also in the list of the refused."""
    needles = NeedleSet.build(
        {"x-hunter2hunter2": "other-secret-9", "hunter2hunter2-b": "tiny", "OK": "hunter2hunter2"}
    )
    assert names(needles) == {"secret", "OK"}
    assert needles.refused == ("secret: shorter than 8 characters",)


def test_no_representation_shows_a_value() -> None:
    """Tracebacks and logs print objects."""
    needles = NeedleSet.build({"A": "hunter2hunter2"})
    assert "hunter2" not in repr(needles) + repr(needles.needles) + str(needles.needles[0])


@given(st.text("ab", max_size=12))
def test_partial_is_the_longest_end_that_a_needle_goes_on_from(text: str) -> None:
    """Against the definition, for needles that overlap themselves and each other."""
    needles = NeedleSet.build({"A": "abaababaab", "B": "babbabbaba", "C": "aabaabaaab"})
    data = text.encode()
    ends = [data[start:] for start in range(len(data))]
    growing = [end for end in ends if any(value.startswith(end) and value != end for value in needles.values)]
    assert needles.partial(data) == max(map(len, growing), default=0)
    expected = [needle for needle in needles.needles if needle.value.startswith(data) and needle.value != data]
    if expected:
        assert needles.first_beginning(data) == expected[0]


def test_an_empty_set_has_no_partials() -> None:
    """Nothing is ever held for it."""
    assert NeedleSet.build().partial(b"anything") == 0
    assert NeedleSet.build().longest == 0


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "APIKEY",
        "STRIPE-API-KEY",
        "GITHUB_TOKEN",
        "token",
        "NPM_AUTH_TOKEN",
        "API_TOKENS",
        "CLIENT_SECRET",
        "SECRET_KEY_BASE",
        "PGPASSWORD",
        "DB_PASSWD",
        "DB_PASS",
        "MYSQL_PWD",
        "SSHPASS",
        "apiKey",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "PRIVATE_KEY",
        "SSH_PRIVKEY",
        "AUTH_KEY",
        "ENCRYPTION_KEY",
        "GOOGLE_CREDENTIALS",
        "VAULT_CREDENTIAL",
        "GPG_PASSPHRASE",
        "KEY_PASS_PHRASE",
        "REDISCLI_AUTH",
        "dbPassword",
    ],
)
def test_credential_names(name: str) -> None:
    """The names of facts part 4, in any case and with any separator."""
    assert credential_values({name: "value"}) == {name: "value"}


@pytest.mark.parametrize(
    "name",
    [
        "MAX_TOKENS",
        "MAX_OUTPUT_TOKENS",
        "TOKENIZERS_PARALLELISM",
        "TOKEN_LIMIT",
        "TOKENS_PER_MINUTE",
        "PWD",
        "OLDPWD",
        "SSH_AUTH_SOCK",
        "XAUTHORITY",
        "GPG_TTY",
        "GPG_AGENT_INFO",
        "KEYBOARD",
        "PATH",
        "HOME",
        "AUTHOR",
        "COMPASS",
        "GOOGLE_APPLICATION_CREDENTIALS_FILE",
        "SSH_PRIVATE_KEY_PATH",
        "TOKEN_URL",
        "PASSENGER_ROOT",
        "BYPASS",
    ],
)
def test_names_that_only_look_like_credentials(name: str) -> None:
    """Settings, sockets, paths and addresses."""
    assert credential_values({name: "value"}) == {}


def test_an_empty_credential_is_none() -> None:
    """There is nothing to hide, and nothing to report as refused."""
    assert credential_values({"API_KEY": "", "TOKEN": " "}) == {}


def test_texts_of_a_json_document_are_needles_with_their_names_from_twelve_characters_on() -> None:
    """A shorter one stands in any document; the last line has no comma."""
    values = NeedleSet.build({"key": '{"a":"b","code":"12345","pass":"foobar"}'}).values
    assert {b'"code": "12345"', b'"code":"12345"', b'"pass": "foobar"', b'"pass":"foobar"'} <= set(values)
    assert not {b'"a": "b"', b'"a":"b"'} & set(values)
