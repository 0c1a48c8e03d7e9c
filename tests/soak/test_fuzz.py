"""A short form of the fuzzing that `make soak` does at length."""

from tests.soak import fuzz_readers


def test_a_thousand_cases(capsys) -> None:
    fuzz_readers.main(1000)
    assert "no crash" in capsys.readouterr().out


def test_the_interpreted_readers_too(capsys, interpreted) -> None:
    fuzz_readers.main(300)
    assert "no crash" in capsys.readouterr().out
