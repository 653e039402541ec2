// Runs the store suite on the etcd engine.

import { randomUUID } from 'node:crypto'
import { after } from 'node:test'
import { storeSuite } from '../../../test/conformance/store.ts'
import { startEtcd } from '../../../test/support/etcd.ts'
import { openEtcdStore } from './store.ts'

const etcd = await startEtcd()
after(() => etcd.close())

/** Every store has its own prefix. The offset makes its first revision 1. */
storeSuite(
  'etcd',
  ({ now, history }) =>
    openEtcdStore({
      endpoints: etcd.endpoints,
      prefix: `/test/${randomUUID()}`,
      now,
      history,
      offset: revision => 1 - revision,
    }),
  40,
  true,
)
