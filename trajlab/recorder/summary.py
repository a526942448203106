"""The Recorder's summary, as text and as HTML."""

import html
from typing import Any, NamedTuple

from trajlab.recorder.session import Session
from trajlab.recorder.state import Counters


def _bytes_text(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError


class Summary(NamedTuple):
    """What is to be said: (label, text) pairs, and one row of texts per field."""

    facts: list[tuple[str, str]]
    fields: list[tuple[str, ...]]


def summarise(session: Session | None, counters: Counters, *, enabled: bool, closed: bool, waiting: int = 0) -> Summary:
    """Return the summary of a recording of which some rows are still `waiting`; the caller holds the lock."""
    if not enabled:
        return Summary([("state", "disabled: every call is a no-op")], [])
    if session is None:
        state = f"{waiting} rows wait to be recorded" if waiting else "nothing recorded yet"
        return Summary([("state", state)], [])
    layout, roles = session.plan.layout, session.plan.roles
    held = session.log.nbytes()
    dropped = counters.seen - counters.rows
    recorded = layout.width if layout.columns is None else f"{layout.width} of {layout.num_envs}"
    taken = "recorded" if session.options.retain else "taken, none kept (retain=False)"
    facts = [
        ("rows", f"{counters.rows} {taken}, {dropped} dropped" + f", {waiting} waiting" * bool(waiting)),
        ("environments", str(recorded)),
        ("memory", f"{_bytes_text(held['device'])} on the device, {_bytes_text(held['host'])} on the host"),
        ("blocks", str(len(session.log.blocks))),
    ]
    if session.options.max_episodes is not None:
        full = "full" if session.is_full(counters) else "not full yet"
        facts.append(("episodes", f"the first {session.options.max_episodes} to start; {full}"))
    if closed:
        facts.append(("state", "closed"))
    facts += [("check", str(finding)) for finding in session.findings]
    facts += [("convention", text) for text in roles.found]
    rows: list[tuple[str, ...]] = []
    for field in layout.fields:
        name = field.source if field.hidden else field.name
        note = "kept as the final observation" if field.hidden else field.role
        if field.moved:
            note += ", read one row earlier"
        cells = "scalar" if not field.shape else str(field.shape)
        size = _bytes_text(field.cell_bytes * layout.width * counters.rows) if session.options.retain else "none"
        rows.append((name, cells, field.dtype.name, size, field.home, note))
    return Summary(facts, rows)


_COLUMNS = ("field", "shape", "dtype", "bytes", "home", "role")


def text_summary(summary: Summary) -> str:
    """Return the plain summary: rows, environments, memory, what the convention found, and the fields."""
    facts, rows = summary
    lines = ["<trajlab.Recorder>"]
    previous = ""
    for label, text in facts:
        lines.append(f"  {'' if label == previous else label:<14}{text}")
        previous = label
    if rows:
        table = [_COLUMNS, *rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(_COLUMNS))]
        lines += [
            "  " + "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in table
        ]
    return "\n".join(lines)


def html_summary(summary: Summary) -> str:
    """Return the summary as an HTML fragment without scripts or global styles."""
    facts, rows = summary
    shown = [(label, text) for label, text in facts if label != "convention"]
    convention = [text for label, text in facts if label == "convention"]
    parts = ["<div><b>trajlab.Recorder</b>", _html_table([], shown)]
    if convention:
        items = "".join(f"<li>{html.escape(text)}</li>" for text in convention)
        parts.append(f"<details><summary>convention</summary><ul style='margin:0'>{items}</ul></details>")
    if rows:
        parts.append(_html_table(_COLUMNS, rows))
    return "".join(parts) + "</div>"


def _html_table(head: Any, rows: Any) -> str:
    cell = "style='text-align:left;padding:1px 8px'"
    top = "".join(f"<th {cell}>{html.escape(text)}</th>" for text in head)
    body = "".join("<tr>" + "".join(f"<td {cell}>{html.escape(text)}</td>" for text in row) + "</tr>" for row in rows)
    return f"<table>{f'<thead><tr>{top}</tr></thead>' if head else ''}<tbody>{body}</tbody></table>"
