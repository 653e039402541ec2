// How to start a program with a seeded bug.

import type { Again } from '../support/server.ts'

export const begin = (name: string): Again => ({
  imports: [new URL('./bugs.ts', import.meta.url).href],
  env: { PROVE_BUG: name },
})
