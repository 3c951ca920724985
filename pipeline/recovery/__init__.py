"""Recovery of a source whose ledger and lake disagree: the lake's facts, and the decision."""
