// Entry point of the executable: runs the command of argv.

import { runCommand } from '../cli/run-command.ts'
import { io, printed } from '../host/io.ts'
import { commands } from './commands.ts'

const code = await runCommand(commands, process.argv.slice(2), io)
await printed()
// Failed output has set the exit code.
if (code) process.exitCode = code
// Exits even if a failed command left a store or a watch open.
process.exit()
