// The one executable: a table of commands. Reads argv and hands it on with the world that commands see.

import { runCommand } from '../cli/run-command.ts'
import { io, printed } from '../host/io.ts'
import { commands } from './commands.ts'

const code = await runCommand(commands, process.argv.slice(2), io)
await printed()
// Ends the process even where a command that failed left a store or a watch open.
process.exit(code)
