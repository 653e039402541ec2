// A clock that jumps, without timers: adds the milliseconds in the file PROVE_CLOCK, which SIGUSR2 reads again. Loaded before a replica with --import.

import { existsSync, readFileSync } from 'node:fs'

const file = process.env['PROVE_CLOCK'] ?? ''
const RealDate = Date
let offset = 0

const read = () => {
  offset = existsSync(file) ? Number(readFileSync(file, 'utf8')) : 0
}
read()
process.on('SIGUSR2', read)

globalThis.Date = new Proxy(RealDate, {
  construct: (target, args, self) => Reflect.construct(target, args.length ? args : [target.now() + offset], self),
  get: (target, name) => (name === 'now' ? () => target.now() + offset : Reflect.get(target, name)),
})
