// The contract of Resources as tests, one file a verb: run in process on every engine, and through the client over HTTP.

import { describe } from 'node:test'
import { createSuite } from './resources/create.ts'
import { deleteSuite } from './resources/delete.ts'
import { listSuite } from './resources/list.ts'
import { ownersSuite } from './resources/owners.ts'
import { patchSuite } from './resources/patch.ts'
import { secretsSuite } from './resources/secrets.ts'
import type { OpenHouse } from './resources/support.ts'
import { updateSuite } from './resources/update.ts'
import { watchSuite } from './resources/watch.ts'

/** `open` returns a server whose `resources` are tested. */
export function resourcesSuite(name: string, open: OpenHouse): void {
  describe(name, { timeout: 60_000 }, () => {
    for (const suite of [
      createSuite,
      listSuite,
      watchSuite,
      updateSuite,
      patchSuite,
      deleteSuite,
      ownersSuite,
      secretsSuite,
    ])
      suite(open)
  })
}
