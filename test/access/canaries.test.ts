// Canaries in every secret field: none of them sings anywhere but where its owner may hear it (D13, D21, D28).

import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { keys, must, ours, refused, teams } from './people.ts'

const canary = (name: string) => `canary${name}${'0123456789abcdef'.repeat(2)}`
const data = canary('data')
const planted = {
  key: `${canary('key')}${'x'.repeat(16)}`,
  data,
  encoded: Buffer.from(data).toString('base64'),
  connector: canary('connector'),
  idToken: canary('idtoken'),
  accessToken: canary('accesstoken'),
  refreshToken: canary('refreshtoken'),
}
const mergeType = { 'content-type': 'application/merge-patch+json' }
const tableType = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }
const metadataType = { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

describe('canaries:', () => {
  let server: Server
  let stranger: string
  const secret = `${ours}/namespaces/default/sharedsecrets`
  before(async () => {
    server = await startServer()
    const manifest = { spec: { data: { password: planted.encoded } } }
    await must(
      server.request('POST', secret, {
        body: { metadata: { name: 'cage', annotations: { [lastApplied]: JSON.stringify(manifest) } }, ...manifest },
      }),
    )
    const spec = {
      user: 'bird',
      key: planted.key,
      identity: { connectorData: planted.connector },
      oidcLogin: { idToken: planted.idToken, accessToken: planted.accessToken, refreshToken: planted.refreshToken },
    }
    await must(
      server.request('POST', keys, {
        body: { metadata: { name: 'bird', annotations: { [lastApplied]: JSON.stringify({ spec }) } }, spec },
      }),
    )
    stranger = (await must(server.request('POST', keys, { body: { spec: { user: 'stranger' } } }))).spec.key
  })
  after(() => server.stop())

  const silent = (where: string, text: string, except: readonly string[] = []) => {
    for (const [name, value] of Object.entries(planted))
      if (!except.includes(name)) assert.ok(!text.includes(value), `the ${name} canary sings in ${where}`)
  }

  test('no response to an unauthorized caller contains a canary', async () => {
    const paths = [
      secret,
      `${secret}/cage`,
      `${secret}/cage/status`,
      keys,
      `${keys}/bird`,
      `${ours}/sharedsecrets`,
      `${ours}/sharedsecrets?watch=1&timeoutSeconds=1`,
      '/metrics',
      '/openapi/v3',
      `${teams}/none`,
    ]
    for (const path of paths)
      for (const headers of [{}, tableType, metadataType, { accept: 'application/yaml' }])
        silent(path, (await server.request('GET', path, { key: stranger, headers })).text)
    for (const method of ['PUT', 'PATCH', 'DELETE'])
      for (const path of [`${secret}/cage`, `${keys}/bird`]) {
        const answer = await server.request(method, path, {
          key: stranger,
          body: {},
          headers: method === 'PATCH' ? mergeType : {},
        })
        silent(`${method} ${path}`, answer.text)
        assert.ok(answer.status >= 400, `${method} ${path}: ${answer.status}`)
      }
  })

  test('fields that are never shown are not shown to administrators either', async () => {
    const never = ['data', 'encoded']
    for await (const event of server.watch(`${keys}?watch=1&timeoutSeconds=1`)) silent('a watch', JSON.stringify(event))
    for (const path of [keys, `${keys}/bird`, `${keys}/bird?includeObject=Object`])
      for (const headers of [{}, tableType, metadataType])
        silent(path, (await server.request('GET', path, { headers })).text)
    const patched = await server.request('PATCH', `${keys}/bird`, {
      body: { spec: { displayName: 'Bird' } },
      headers: mergeType,
    })
    silent('a patch answer', patched.text)
    const { body } = await server.request('GET', `${keys}/bird`)
    silent(
      'a replace answer',
      (await server.request('PUT', `${keys}/bird`, { body: { ...body, spec: { ...body.spec, key: planted.key } } }))
        .text,
    )
    const applied = {
      apiVersion: 'management.platform.sh/v1',
      kind: 'OwnedAccessKey',
      spec: { user: 'bird', key: planted.key },
    }
    silent(
      'an apply answer',
      (
        await server.request('PATCH', `${keys}/bird?fieldManager=a&force=true`, {
          body: applied,
          headers: { 'content-type': 'application/apply-patch+yaml' },
        })
      ).text,
    )
    for (const headers of [tableType, { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }])
      silent('metadata of secrets', (await server.request('GET', secret, { headers })).text)
    assert.ok(
      (await server.request('GET', `${secret}/cage`)).text.includes(planted.encoded),
      `only ${never} are for those who may get`,
    )
  })

  test('errors do not repeat values that may be secret', async () => {
    const bad = { metadata: { name: 'bad' }, spec: { data: { password: planted.data } } }
    for (const body of [bad, { ...bad, spec: { data: planted.data } }, { ...bad, spec: { data: [planted.data] } }]) {
      const answer = await server.request('POST', secret, { body })
      assert.equal(answer.status, 422)
      silent('a create error', answer.text)
      const apply = await server.request('PATCH', `${secret}/bad?fieldManager=a`, {
        body: { apiVersion: 'management.platform.sh/v1', kind: 'SharedSecret', ...body },
        headers: { 'content-type': 'application/apply-patch+yaml' },
      })
      silent('an apply error', apply.text)
      assert.ok(apply.status >= 400)
    }
    const broken = await server.request('POST', secret, {
      body: `{"spec":{"data":{"a":"${planted.data}"`,
      headers: { 'content-type': 'application/json' },
    })
    silent('a syntax error', broken.text)
    await refused(server.request('POST', keys, { body: { spec: { user: 'x', key: planted.key } } }), 422, /in use/)
    silent('a key error', (await server.request('POST', keys, { body: { spec: { key: 'plat_canarykey' } } })).text)
    silent('a wrong bearer', (await server.request('GET', teams, { key: `${planted.key}!` })).text)
  })

  test('logs, metrics and storage contain no canary in clear text', async () => {
    silent('metrics', (await server.request('GET', '/../../metrics')).text)
    silent('the log', server.output())
    const files = readdirSync(server.directory, { recursive: true }) as string[]
    for (const file of files) {
      const path = join(server.directory, file)
      if (statSync(path).isFile()) silent(file, readFileSync(path).toString('latin1'))
    }
  })

  test('the canary key still authenticates', async () => {
    const me = await must(
      server.request('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', { key: planted.key, body: {} }),
    )
    assert.equal(me.status.userInfo.username, 'bird')
  })
})
