"""What mends a finding of the self-check where rows come from Gymnasium: no convention can be given for them."""

from collections.abc import Mapping
from types import MappingProxyType

from trajlab.check import FindingName

_MODE = "the environments' metadata['autoreset_mode'] says what they do after an end; correct it where it is not so"
MENDS: Mapping[FindingName, str] = MappingProxyType(
    {
        "no_reset_row": _MODE,
        "reset_row": _MODE,
        "late_flags": _MODE,
        "early_flags": _MODE,
        "double_flags": _MODE,
        "replaced_final": "infos['final_obs'] should hold the last observation; exclude=['obs'] leaves all of them out",
        "endless": "gymnasium.wrappers.TimeLimit ends episodes; Recorder(envs=...) leaves environments out",
        "strange_actions": _MODE,
    }
)
