"""Consumers get each batch and each finished episode once, in order, and cannot harm the recording or each other."""

import gc
import subprocess
import sys
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from chunks import make_chunk

import trajlab as tl


class Batches(tl.Consumer):
    """Keeps a copy of all batches."""

    def __init__(self):
        self.batches, self.closed = [], 0

    def on_batch(self, batch):
        copies = {name: np.array(array) for name, array in batch.fields.items() if name != "brain"}
        self.batches.append((copies, np.array(batch.time), batch))

    def close(self):
        self.closed += 1


class Episodes(tl.Consumer):
    """Keeps all Datasets."""

    def __init__(self):
        self.datasets, self.closed = [], 0

    def on_episodes(self, episodes):
        self.datasets.append(episodes)

    def close(self):
        self.closed += 1

    @property
    def numbers(self):
        return sorted(number for ds in self.datasets for number in ds["episode"].values.tolist())


def record_all(recorder, home="jax", rows=60, length=5, **kwargs):
    for start in range(0, rows, length):
        recorder.record(make_chunk(range(start, start + length), home=home), **kwargs)


@pytest.mark.parametrize("retain", [True, False])
def test_batches_are_the_chunks_in_order(home, retain):
    consumer = Batches()
    recorder = tl.Recorder(retain=retain, consumers=[consumer])
    record_all(recorder, home)
    assert [batch.first_row for *_, batch in consumer.batches] == list(range(0, 60, 5))
    assert [batch.iteration for *_, batch in consumer.batches] == list(range(12))
    for number, (fields, _, batch) in enumerate(consumer.batches):
        assert batch.envs.tolist() == [0, 1, 2]
        assert batch.columns is None
        assert batch.num_envs == 3
        chunk = make_chunk(range(5 * number, 5 * number + 5), home=home)
        np.testing.assert_array_equal(fields["action"], chunk["action"])
        np.testing.assert_array_equal(fields["obs.image"], chunk["obs"]["image"])


@pytest.mark.parametrize("retain", [True, False])
def test_episodes_are_those_of_the_recording(home, small_blocks, retain):
    consumer, whole = Episodes(), tl.Recorder()
    recorder = tl.Recorder(retain=retain, consumers=[consumer])
    record_all(recorder, home)
    record_all(whole, home)
    recorder.close()
    want = whole.to_dataset()
    assert consumer.numbers == want["episode"].values.tolist()
    assert len(consumer.datasets) > 3  # they come as they end
    for ds in consumer.datasets:
        tl.validate(ds, deep=True)
        same = want.sel(episode=ds["episode"]).isel(time=slice(int(ds["length"].max())))
        assert ds.drop_attrs().load().identical(same.drop_attrs().load())


def test_rows_are_given_up_behind_the_episodes(small_blocks):
    consumer = Episodes()
    recorder = tl.Recorder(retain=False, consumers=[consumer])
    record_all(recorder, rows=1000)
    consumer.datasets.clear()
    gc.collect()
    record_all(recorder, rows=1000)
    assert len(recorder._session.log.blocks) <= 3
    assert len(recorder._session.log._spare) <= 3  # memory is used again
    with pytest.raises(ValueError, match="retain=False"):
        recorder.to_dataset()


@pytest.mark.parametrize("consumer", [Episodes, lambda: tl.StreamingTrace("x")], ids=["episodes", "batches"])
def test_nothing_on_the_host_grows_with_the_calls(consumer):
    recorder = tl.Recorder(retain=False, consumers=[consumer()], num_envs=4)
    for step in range(60):
        recorder.record({"x": np.zeros((1, 4)), "done": np.ones((1, 4), bool)})
        recorder.record_step({"x": np.zeros(2), "done": np.ones(2, bool)}, envs=[step % 3, 3])
    assert len(recorder._session.iterations) <= 3
    assert len(recorder._session._sharing._closed) <= 3


def test_a_dataset_outlives_the_rows_given_up(small_blocks):
    consumer = Episodes()
    recorder = tl.Recorder(retain=False, consumers=[consumer])
    record_all(recorder, rows=40)
    ds = consumer.datasets[0]
    before = ds["serial"].copy(deep=True).load()
    record_all(recorder, rows=400)
    assert ds["serial"].load().identical(before)


def test_an_array_may_be_donated_once_recorded():
    histogram = tl.StreamingHistogram("x", num_values=8)
    recorder = tl.Recorder(retain=False, consumers=[histogram])
    spoil = jax.jit(lambda x: x + 7, donate_argnums=0)
    for number in range(4):
        x = jnp.full((64, 8), number)
        recorder.record({"x": x, "done": np.zeros((64, 8), bool)})
        spoil(x)
    assert histogram.result()["count"].values.tolist() == [512] * 4


def test_an_array_may_be_refilled_once_recorded():
    trace = tl.StreamingTrace("x")
    recorder = tl.Recorder(retain=False, consumers=[trace])
    x = np.empty((4, 2))
    for number in range(50):
        x[:] = number
        recorder.record({"x": x, "done": np.zeros((4, 2), bool)})
    assert trace.result()["mean"].values.tolist() == np.repeat(np.arange(50.0), 4).tolist()


class Failing(tl.Consumer):
    """Raises at its second batch."""

    def __init__(self):
        self.calls, self.closed = 0, 0

    def on_batch(self, batch):
        self.calls += 1
        if self.calls == 2:
            raise RuntimeError("the disk is full")

    def close(self):
        self.closed += 1


def test_one_that_fails_is_reported_once_and_detached():
    first, failing, last = Batches(), Failing(), Batches()
    recorder = tl.Recorder(consumers=[first, failing, last])
    recorder.record(make_chunk(range(5)))
    with pytest.warns(UserWarning, match=r"(?s)Failing.*failed.*Traceback.*the disk is full"):
        recorder.record(make_chunk(range(5, 10)))
    recorder.record(make_chunk(range(10, 15)))
    recorder.close()
    assert (failing.calls, failing.closed) == (2, 1)
    assert len(first.batches) == len(last.batches) == 3
    assert first.closed == last.closed == 1
    assert recorder.to_dataset()["length"].sum() == 45


def test_one_that_fails_at_the_end_does_not_keep_others_from_closing():
    class Bad(Batches):
        def close(self):
            raise OSError("gone")

    last = Batches()
    recorder = tl.Recorder(consumers=[Bad(), last])
    with pytest.warns(UserWarning, match=r"(?s)failed when it was closed.*gone"):
        recorder.close()
    recorder.close()
    assert last.closed == 1


def test_one_that_fails_is_reported_even_if_its_repr_fails_too():
    class Nameless(Failing):
        def __repr__(self):
            raise AttributeError("not yet made")

    recorder = tl.Recorder(consumers=[Nameless()])
    recorder.record(make_chunk(range(5)))
    with pytest.warns(UserWarning, match=r"(?s)the consumer <Nameless, whose repr raises> failed.*the disk is full"):
        recorder.record(make_chunk(range(5, 10)))
    assert recorder.num_recorded_steps == 10


def test_one_consumer_fills_from_one_open_recorder():
    consumer = Batches()
    first = tl.Recorder(consumers=[Batches(), consumer])
    with pytest.raises(
        ValueError, match=r"Batches object .*another Recorder still fills.* close\(\) the other Recorder"
    ):
        tl.Recorder(consumers=[consumer])
    first.record(make_chunk(range(5)))
    assert len(consumer.batches) == 1
    first.close()
    with pytest.raises(ValueError, match="max_episodes=0"):
        tl.Recorder(max_episodes=0, consumers=[consumer])
    second = tl.Recorder(consumers=[consumer])
    second.record(make_chunk(range(5)))
    assert len(consumer.batches) == 2
    del second
    gc.collect()
    tl.Recorder(consumers=[consumer]).close()
    assert consumer.closed == 3


def test_an_interrupt_is_passed_on_and_the_others_get_the_batch_later():
    class Interrupted(tl.Consumer):
        calls = 0

        def on_batch(self, batch):
            self.calls += 1
            if self.calls == 1:
                raise KeyboardInterrupt

    interrupted, other = Interrupted(), Batches()
    recorder = tl.Recorder(consumers=[interrupted, other])
    with pytest.raises(KeyboardInterrupt):
        recorder.record(make_chunk(range(5)))
    recorder.record(make_chunk(range(5, 10)))
    assert interrupted.calls == 2
    assert [batch.first_row for *_, batch in other.batches] == [0, 5]


def test_a_failure_is_reported_behind_an_interrupt():
    class Fails(tl.Consumer):
        def __init__(self, error):
            self.error = error

        def on_batch(self, batch):
            error, self.error = self.error, None
            if error is not None:
                raise error

    recorder = tl.Recorder(retain=False, consumers=[Fails(RuntimeError("disk full")), Fails(KeyboardInterrupt())])
    chunk = {"x": np.zeros((1, 2)), "done": np.zeros((1, 2), bool)}
    with pytest.raises(KeyboardInterrupt):
        recorder.record(chunk)
    with pytest.warns(UserWarning, match="disk full"):
        recorder.record(chunk)


def test_a_consumer_may_read_and_record():
    class Reads(tl.Consumer):
        seen = ()

        def on_batch(self, batch):
            thread = threading.Thread(target=self.read)  # would wait for ever if the recorder's lock were held
            thread.start()
            thread.join(20)
            assert not thread.is_alive()
            if batch.first_row == 0:
                recorder.record(make_chunk(range(5, 10)))

        def read(self):
            self.seen += (int(recorder.to_dataset()["length"].sum()),)

    reads, other = Reads(), Batches()
    recorder = tl.Recorder(consumers=[reads, other])
    recorder.record(make_chunk(range(5)))
    assert reads.seen == (15, 30)
    assert [batch.first_row for *_, batch in other.batches] == [0, 5]


def test_threads_keep_the_order_of_their_rows():
    consumer = Batches()
    recorder = tl.Recorder(consumers=[consumer])
    recorder.record(make_chunk(range(5), home="jax"))
    threads = [threading.Thread(target=record_all, args=(recorder,), kwargs={"rows": 50}) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = [batch.first_row for *_, batch in consumer.batches]
    assert rows == list(range(0, 205, 5))


def test_an_exception_in_the_loop_closes_with_all_that_came():
    consumer = Episodes()

    def train():
        with tl.Recorder(retain=False, consumers=[consumer]) as recorder:
            record_all(recorder)
            raise RuntimeError("diverged")

    with pytest.raises(RuntimeError, match="diverged"):
        train()
    assert consumer.closed == 1
    assert sum(int(ds["length"].sum()) for ds in consumer.datasets) == 180
    assert "cut" in consumer.datasets[-1]["end_reason"].values


def test_a_recorder_that_is_dropped_closes_its_consumers():
    consumer = Episodes()
    recorder = tl.Recorder(retain=False, consumers=[consumer])
    record_all(recorder)
    gone = weakref.ref(recorder)
    del recorder
    gc.collect()
    assert gone() is None
    assert consumer.closed == 1
    assert sum(int(ds["length"].sum()) for ds in consumer.datasets) == 180


def test_a_recorder_that_is_dropped_gives_the_rest_to_consumers_without_a_close():
    class Lengths(tl.Consumer):
        total = 0

        def on_episodes(self, episodes):
            self.total += int(episodes["length"].sum())

    consumer = Lengths()
    recorder = tl.Recorder(retain=False, consumers=[consumer])
    record_all(recorder)
    del recorder
    gc.collect()
    assert consumer.total == 180


def test_the_end_of_python_closes_consumers():
    code = (
        "import numpy as np, trajlab as tl\n"
        "class Prints(tl.Consumer):\n"
        "    def on_episodes(self, episodes): print('episodes', episodes['obs'].values.ravel().tolist())\n"
        "    def close(self): print('closed')\n"
        "rec = tl.Recorder(retain=False, consumers=[Prints()])\n"
        "rec.record({'obs': np.ones((3, 1)), 'done': np.zeros((3, 1), bool)})\n"
        "raise SystemExit(3)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (run.returncode, run.stdout) == (3, "episodes [1.0, 1.0, 1.0]\nclosed\n"), run.stderr


def test_the_first_episodes_to_start_are_given_out():
    consumer, whole = Episodes(), tl.Recorder(max_episodes=7)
    recorder = tl.Recorder(retain=False, max_episodes=7, consumers=[consumer])
    record_all(recorder)
    record_all(whole)
    recorder.close()
    assert recorder.is_full
    assert consumer.numbers == list(range(7)) == whole.to_dataset()["episode"].values.tolist()


def test_reset_forgets_episodes_under_way():
    consumer = Episodes()
    recorder = tl.Recorder(retain=False, consumers=[consumer])
    record_all(recorder, rows=5)
    recorder.reset()
    record_all(recorder, rows=5)
    recorder.close()
    once = consumer.numbers
    assert once.count(0) in (1, 2)
    assert recorder.num_recorded_steps == 5


def test_without_recording_consumers_are_only_closed():
    consumer = Batches()
    with tl.Recorder(enabled=False, consumers=[consumer]) as recorder:
        recorder.record(make_chunk(range(5)))
    assert (consumer.batches, consumer.closed) == ([], 1)


def test_wrong_arguments():
    with pytest.raises(ValueError, match="retain=False without consumers="):
        tl.Recorder(retain=False)
    with pytest.raises(TypeError, match=r"consumers=.*expected a list"):
        tl.Recorder(consumers=Batches())
    with pytest.raises(TypeError, match=r"derived from trajlab.Consumer"):
        tl.Recorder(consumers=[print])
    with pytest.raises(TypeError, match=r"derived from trajlab.Consumer"):
        tl.Recorder(consumers=[Batches])
    consumer = Batches()
    with pytest.raises(ValueError, match="twice"):
        tl.Recorder(consumers=[consumer, consumer])


def test_one_that_would_get_nothing_is_refused():
    class Typo(tl.Consumer):
        def on_episode(self, episode):
            pass

    with pytest.raises(
        TypeError, match="holds a Typo, which would get nothing; expected a class that defines on_batch"
    ):
        tl.Recorder(consumers=[Typo()])
