// The commands that need no server's rooms, in the order of the help. bin/platform.ts puts them beside its own.

import type { Command } from './command.ts'
import { tokenRevoke, tokenRotateKey } from './token.ts'
import { licenseInspect, vclusterDefaults, vclusterSchema, vclusterValidate } from './vcluster-config.ts'
import { vclusterPatch } from './vcluster-patch.ts'
import { vclusterTest } from './vcluster-test.ts'

export const commands: readonly Command[] = [
  vclusterValidate,
  vclusterPatch,
  vclusterTest,
  vclusterSchema,
  vclusterDefaults,
  licenseInspect,
  tokenRevoke,
  tokenRotateKey,
]
