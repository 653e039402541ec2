// A data directory and a backup of an earlier release open in this one, with every kind and every key (test/fixtures/release-0.1).

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

const fixture = join(import.meta.dirname, '../fixtures/release-0.1')
const program = join(import.meta.dirname, '../../bin/platform.js')
const keys = JSON.parse(readFileSync(join(fixture, 'keys.json'), 'utf8')) as { readonly [name: string]: string }
const ours = '/apis/management.platform.sh/v1'
const rbac = '/apis/rbac.authorization.k8s.io/v1'
const text = (base64: string) => Buffer.from(base64, 'base64').toString()

const copied = () => {
  const directory = mkdtempSync(join(tmpdir(), 'platform-upgrade-'))
  cpSync(join(fixture, 'directory'), directory, { recursive: true })
  return directory
}
const restored = () => {
  const directory = join(mkdtempSync(join(tmpdir(), 'platform-upgrade-')), 'data')
  mkdirSync(directory)
  cpSync(join(fixture, 'directory/master.key'), join(directory, 'master.key'))
  const { status, stderr } = spawnSync(process.execPath, [
    program,
    'restore',
    join(fixture, 'platform.backup'),
    '--data',
    directory,
  ])
  assert.equal(status, 0, String(stderr))
  // startServer reads these; a backup does not hold the administrator's credentials.
  for (const name of ['admin.key', 'admin.kubeconfig']) cpSync(join(fixture, 'directory', name), join(directory, name))
  return directory
}

describe('data of release 0.1 opens in this release:', { timeout: 120_000 }, () => {
  for (const [what, prepare] of Object.entries({ 'its data directory': copied, 'its backup': restored }))
    test(what, async () => {
      const server = await startServer({ directory: prepare() })
      try {
        await check(server)
      } finally {
        await server.stop()
      }
    })
})

async function check(server: Server): Promise<void> {
  const get = async (path: string, as = 'admin') => {
    const { status, body, text: said } = await server.request('GET', path, { key: keys[as] as string })
    assert.equal(status, 200, `${as} ${path}: ${said}`)
    return body
  }
  const names = async (path: string) =>
    ((await get(path)).items as { metadata: { name: string } }[]).map(one => one.metadata.name)

  assert.deepEqual((await get(`${ours}/teams/web`)).spec.users, ['ada', 'grace'])
  assert.deepEqual(await names(`${ours}/sharedsecrets`), ['db', 'of-team'])
  assert.deepEqual(await names(`${ours}/projectsecrets`), ['follows', 'own'])
  assert.deepEqual(await names(`${ours}/ownedaccesskeys`), ['ada', 'admin', 'robot', 'scoped', 'team'])
  assert.ok((await names(`${ours}/tokenrevocations`)).includes('lost'))
  assert.ok((await names(`${rbac}/clusterroles`)).includes('sum'))
  assert.ok((await names(`${rbac}/clusterrolebindings`)).includes('web-sum'))
  assert.deepEqual(await names(`${rbac}/namespaces/p-shop/roles`), ['reader'])
  assert.deepEqual(await names(`${rbac}/namespaces/p-shop/rolebindings`), ['robot-reads'])

  const secret = await get(`${ours}/namespaces/default/sharedsecrets/db`)
  assert.equal(text(secret.spec.data.password), 'hunter3')
  const before = await get(`${ours}/namespaces/default/sharedsecrets/db/history/1`)
  assert.equal(text(before.spec.data.password), 'hunter2')
  const follows = await get(`${ours}/namespaces/p-shop/projectsecrets/follows`)
  assert.equal(text(follows.spec.data.password), 'hunter3')

  // Everybody keeps what they had: by access entry, by owner, by binding to a group, by aggregation, within a scope.
  await get(`${ours}/namespaces/default/sharedsecrets/db`, 'ada')
  await get(`${ours}/namespaces/default/sharedsecrets/of-team`, 'team')
  await get(`${ours}/namespaces/p-shop/projectsecrets/own`, 'ada')
  await get(`${ours}/namespaces/p-shop/projectsecrets/own`, 'robot')
  await get(`${ours}/namespaces/p-shop/projectsecrets/own`, 'scoped')
  await get(`${rbac}/clusterroles`, 'team')
  const refused = await server.request('GET', `${ours}/namespaces/default/sharedsecrets/db`, {
    key: keys['scoped'] as string,
  })
  assert.equal(refused.status, 403, refused.text)
}
