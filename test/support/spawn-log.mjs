// Loaded before the program under test: whatever it starts is written, with its arguments, to the file in this module's query.

import child from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const { searchParams } = new URL(import.meta.url)
const tell = words => appendFileSync(searchParams.get('log'), `${JSON.stringify(words)}\n`)
// With `own`, its own arguments as well: somebody started it who is no person at a keyboard.
if (searchParams.has('own')) tell(process.argv)
const { spawn } = child
child.spawn = (file, args, options) => {
  tell([file, ...(args ?? [])])
  return spawn(file, args, options)
}
syncBuiltinESMExports()
