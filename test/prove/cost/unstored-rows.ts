// Costly requests for kinds that are not stored: searches of a large audit log, and previews of patches at their limits (D70).

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openPatchPreviews } from '../../../src/apiserver/patch-previews.ts'
import { openAuditFeed } from '../../../src/serving/audit-feed.ts'
import { openAuditReader } from '../../../src/serving/audit-search.ts'
import { judge } from './limits.ts'
import type { Row } from './rows.ts'
import { openSystem, type System } from './system.ts'

const ours = '/kubernetes/management/apis/management.platform.sh/v1'

export const unstoredRows: { readonly [what: string]: Row } = {
  '500 events in an audit log of 60 MB': () => searching(line => line, '?limit=500'),
  'nothing in an audit log of 60 MB, with every line parsed': () =>
    searching(line => line, `?limit=500&fieldSelector=${encodeURIComponent('code!=201,verb!=get')}`),
  'an audit log of 60 MB for a caller who sees none of its events': () =>
    searching(line => line, '?limit=500', { user: 'eve' }),
  '500 events with bodies of 60 KB': () =>
    searching(line => ({ ...line, requestObject: { data: 'x'.repeat(60_000) } }), '?limit=500', { lines: 1000 }),
  'a preview of 100 patches on an object of 200 KB': () =>
    previewing({
      object: endpoints(Object.fromEntries(many(200, at => [`k${at}`, 'x'.repeat(900)]))),
      patches: many(100, at => ({ path: `metadata.annotations.k${at}`, expression: 'value + 1' })),
      maxRounds: 20,
    }),
  'a preview with an endless loop in each of 100 patches': () =>
    previewing({
      object: endpoints({}),
      patches: many(100, at => ({ path: `metadata.annotations.k${at}`, expression: '(() => { for (;;) {} })()' })),
    }),
}

const many = <T>(count: number, make: (at: number) => T) => Array.from({ length: count }, (_, at) => make(at))

const endpoints = (annotations: object) => ({
  apiVersion: 'v1',
  kind: 'Endpoints',
  metadata: { name: 'web', namespace: 'default', annotations: { k0: 'a', ...annotations } },
})

type Searching = { readonly lines?: number; readonly user?: string }

/** `user`: searches instead of the administrator. */
async function searching(shape: (line: object) => object, query: string, { lines = 120_000, user }: Searching = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'audit-cost-'))
  const file = join(directory, 'audit.log')
  const line = (at: number) => ({
    auditID: `event-${at}`,
    stage: 'ResponseComplete',
    verb: 'create',
    user: { username: 'ada', groups: many(10, group => `group-${group}`) },
    sourceIPs: ['10.0.0.1'],
    objectRef: { resource: 'teams', name: `team-${at}`, uid: `uid-${at}` },
    responseStatus: { metadata: {}, code: 201 },
    stageTimestamp: '2026-01-31T12:00:00.000000Z',
    annotations: { 'authorization.k8s.io/decision': 'allow' },
  })
  writeFileSync(file, many(lines, at => `${JSON.stringify(shape(line(at)))}\n`).join(''))
  const settled = async () => {}
  const auditLog = openAuditReader({ target: file, file, feed: openAuditFeed(Date.now), settled })
  const system = await openSystem(undefined, undefined, { auditLog })
  try {
    const key = user === undefined ? system.adminKey : await keyOf(system, user)
    return await judged(system, { method: 'GET', url: `${ours}/auditevents${query}`, key })
  } finally {
    await system.close()
    rmSync(directory, { recursive: true })
  }
}

async function previewing(spec: object) {
  const previews = openPatchPreviews(100_000, Date.now)
  const system = await openSystem(undefined, undefined, { previewPatches: previews.run })
  try {
    return await judged(system, { method: 'POST', url: `${ours}/patchpreviews`, body: JSON.stringify({ spec }) })
  } finally {
    await system.close()
    await previews.close()
  }
}

async function keyOf(system: System, user: string): Promise<string> {
  const headers = { authorization: `Bearer ${system.adminKey}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ metadata: { name: user }, spec: { user } })
  const { text } = await system.ask({ method: 'POST', url: `${ours}/ownedaccesskeys`, headers, body })
  return JSON.parse(text).spec.key
}

/** The work is in threads, so only the longest piece on the main thread counts. */
async function judged(
  system: System,
  { key = system.adminKey, ...request }: { method: string; url: string; body?: string; key?: string },
) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const send = async () => {
    const { code, text } = await system.ask({ ...request, headers })
    if (code >= 300) throw new Error(`${code}: ${text.slice(0, 300)}`)
  }
  await send() // starts the threads
  return (await judge(undefined, send)).problem
}
