// The request that the webhook provider of the External Secrets Operator sends for the manifests in docs/CONNECTED-CLUSTERS.md.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { must, ours } from '../access/people.ts'
import { signedIn } from '../support/cli-home.ts'
import { blocksOf, readDocument } from '../support/docs.ts'
import { openRequests } from '../support/request.ts'

const { server, home } = await signedIn({ storage: 'memory' })
const { request } = openRequests({ base: server.https, ca: server.ca, key: '' })

const manifests = blocksOf(readDocument('docs/CONNECTED-CLUSTERS.md'))
  .filter(({ how, text }) => how === 'yaml' && text.includes('external-secrets.io/'))
  .flatMap(({ text }) => parseAllDocuments(text).map(one => one.toJS()))
const of = (kind: string) => manifests.find(one => one.kind === kind)
const { webhook } = of('SecretStore').spec.provider
const [wanted] = of('ExternalSecret').spec.data

type Values = { readonly [path: string]: string }

/** The templates of Go that the page uses: only values, no functions. */
const render = (template: string, values: Values) =>
  template.replace(/{{ \.([\w.]+) }}/g, (_, path: string) => {
    assert.ok(Object.hasOwn(values, path), `the operator has no value for .${path}`)
    return values[path] as string
  })

/** The paths of JSON that the page uses: members, and one member in brackets. */
function lookUp(path: string, value: unknown): unknown {
  const [, members = '', last = ''] = /^\$((?:\.\w+)*)\["([^"]+)"\]$/.exec(path) ?? assert.fail(`unknown path ${path}`)
  const names = [...members.split('.').filter(Boolean), last]
  return names.reduce((at, name) => (at as { [name: string]: unknown } | undefined)?.[name], value)
}

async function read(key: string, { name = wanted.remoteRef.key, property = wanted.remoteRef.property } = {}) {
  const values = { 'remoteRef.key': name, 'remoteRef.property': property, 'auth.key': key }
  const { pathname } = new URL(render(webhook.url, values))
  const headers = Object.fromEntries(
    Object.entries(webhook.headers as Values).map(([header, text]) => [header, render(text, values)]),
  )
  const { status, body } = await request(webhook.method, pathname, { headers })
  const value = status === 200 ? lookUp(render(webhook.result.jsonPath, values), body) : undefined
  return { status, value: typeof value === 'string' ? Buffer.from(value, 'base64').toString() : undefined }
}

test('the operator reads one key of a secret with a key for this secret only', async () => {
  const config = '{"auths":{"registry.example.org":{"username":"shop","password":"canary-of-registry"}}}'
  const create = (name: string, stringData: object) =>
    must(
      server.request('POST', `${ours}/namespaces/p-shop/projectsecrets`, {
        body: { metadata: { name }, spec: { stringData } },
      }),
    )
  await create('registry', { '.dockerconfigjson': config, other: 'x' })
  await create('database', { password: 'canary-of-database' })
  const command = /^platform (create accesskey .*) > \S+$/m.exec(readDocument('docs/CONNECTED-CLUSTERS.md'))?.[1] ?? ''
  const key = (await home.ok(command)).trim()
  assert.equal(wanted.remoteRef.decodingStrategy, 'Base64')
  assert.deepEqual(await read(key), { status: 200, value: config })
  assert.deepEqual(await read(key, { property: 'other' }), { status: 200, value: 'x' })
  assert.deepEqual(await read(key, { property: 'absent' }), { status: 200, value: undefined })
  assert.equal((await read(key, { name: 'database', property: 'password' })).status, 403)
  assert.equal((await read(key, { name: 'absent' })).status, 403)
  assert.equal((await read(server.adminKey, { name: 'absent' })).status, 404)
  await must(server.request('DELETE', `${ours}/ownedaccesskeys/eso`))
  assert.equal((await read(key)).status, 401)
})
