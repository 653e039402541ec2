// Loaded before the program under test: whatever it starts is written, with its arguments, to the file in this module's query.

import child from 'node:child_process'
import { appendFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'

const log = new URL(import.meta.url).searchParams.get('log')
const { spawn } = child
child.spawn = (file, args, options) => {
  appendFileSync(log, `${JSON.stringify([file, ...(args ?? [])])}\n`)
  return spawn(file, args, options)
}
syncBuiltinESMExports()
