// The commands that need no server's rooms, in the order of the help. bin/platform.ts puts them beside its own.

import type { Command } from './command.ts'

export const commands: readonly Command[] = []
