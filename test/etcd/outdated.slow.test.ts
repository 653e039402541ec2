// A replica is outdated when etcd has not confirmed it for five seconds, whatever its clock says.

import assert from 'node:assert/strict'
import { afterEach, beforeEach, test } from 'node:test'
import { type EtcdStore, openEtcdStore } from '../../src/storage/etcd/store.ts'
import { type EtcdCluster, startEtcd } from '../support/etcd.ts'
import { eventually } from '../support/wire.ts'

const hour = 3_600_000
let etcd: EtcdCluster
let store: EtcdStore
let clock: number

beforeEach(async () => {
  clock = Date.now()
  etcd = await startEtcd()
  store = await openEtcdStore({ endpoints: etcd.endpoints, prefix: '/outdated', now: () => clock })
})
afterEach(async () => {
  await store.close()
  await etcd.close()
})

test('a clock that is turned back does not hide that etcd does not respond', async () => {
  etcd.members[0]?.signal('SIGSTOP')
  clock -= hour
  await eventually('the replica is outdated', async () => store.outdated !== undefined)
})

test('a clock that jumps ahead does not make a replica outdated', () => {
  clock += hour
  assert.equal(store.outdated, undefined)
})
