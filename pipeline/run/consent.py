"""A person's consent: if something hidden gets another name, no run shows it before
somebody has agreed (`lockstep resume`).

While a table is captured, `StatementDecider` judges each statement on it. This module
finds the tables for which that did not happen: the patterns left them out meanwhile, or
a statement could not be followed.
"""

from __future__ import annotations

from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.shape.shaping import consent_hint
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.table import TableName, patterns_of


def consent_errors(ports: RunPorts) -> dict[TableName, TableError]:
    """Return the tables that a run must not take before a person consents, since they
    may show what was hidden."""
    errors = {
        table: error
        for table, error in tables_needing_consent(ports).items()
        if ports.source.patterns.matches(table)
    }
    for table, state in ports.ledger.table_states(ports.source.name).items():
        if state.stopped_by is not StoppedBy.RUN or not ports.source.patterns.matches(table):
            continue
        if (error := unknown_structure_error(ports, table)) is not None:
            errors[table] = error
    return errors


def tables_needing_consent(ports: RunPorts) -> dict[TableName, TableError]:
    """Return the tables that are not followed, and whose settings would show more than
    was shown before the patterns left them out."""
    source = ports.source.name
    versions = ports.ledger.schemas_at(source, shaped=True)
    if not versions:
        return {}
    states, scopes = ports.ledger.table_states(source), ports.ledger.capture_scopes(source)
    errors = dict[TableName, TableError]()
    for version in versions:
        table, state = version.table, states.get(version.table)
        is_followed = state is not None and state.condition is TableCondition.FOLLOWING
        if is_followed or (state and state.need is Need.CONSENT):
            continue
        # Only a version that was recorded while the patterns left the table out needs
        # this check: it says what was hidden before.
        patterns = patterns_of(scopes, version.batch)
        if patterns is None or patterns.matches(table):
            continue
        if (error := ports.shaping.consent_error(version)) is not None:
            errors[table] = error
    return errors


def unknown_structure_error(ports: RunPorts, table: TableName) -> TableError | None:
    """Return an error if the table's structure is not known any more, and its last
    known structure hides something; otherwise None. If it was never known, since the
    ledger was lost, the settings say whether something is hidden."""
    newest = ports.ledger.schema_at(ports.source.name, table)
    if newest is None or newest.knowledge is not Knowledge.UNKNOWN:
        return None
    versions = ports.ledger.schema_versions(ports.source.name, table)
    known_versions = [version for version in versions if version.schema is not None]
    if known_versions:
        hides_something = known_versions[-1].shown_as is not None
    else:
        hides_something = ports.shaping.rules_of(table) is not None
    if not hides_something:
        return None
    reason = f"{newest.reason}, so that what its settings hide may have another name"
    return TableError(reason, hint=consent_hint(table), need=Need.CONSENT)
