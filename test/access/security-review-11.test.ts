// Security review 11: reads without data in the audit log, and writing such objects back.

import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'

const ours = '/apis/management.platform.sh/v1'
const secrets = `${ours}/namespaces/default/sharedsecrets`

describe('reads without data', () => {
  let server: Server
  before(async () => {
    server = await startServer({ storage: 'memory', inProcess: true })
    const body = {
      metadata: {
        name: 'db',
        annotations: {
          'tool.example.org/last-applied-configuration': '{"spec":{"stringData":{"password":"canary-11"}}}',
        },
      },
      spec: { stringData: { password: 'canary-11' } },
    }
    assert.equal((await server.request('POST', secrets, { body })).status, 201)
  })
  after(() => server.stop())

  test('no copy of a manifest shows the values', async () => {
    const { text } = await server.request('GET', `${secrets}/db?omitData=true`)
    assert.doesNotMatch(text, /canary-11/)
  })

  test('the audit log says whether a read omitted the data', async () => {
    await server.request('GET', `${secrets}/db?omitData=false`)
    const selector = encodeURIComponent('verb=get,resource=sharedsecrets,name=db')
    const { body } = await server.request('GET', `${ours}/auditevents?fieldSelector=${selector}`)
    const uris = body.items.map((one: { requestURI: string }) => one.requestURI)
    assert.ok(
      uris.some((uri: string) => uri.endsWith('?omitData=false')),
      uris.join(' '),
    )
  })

  for (const [name, method, headers] of [
    ['PUT', 'PUT', {}],
    ['apply', 'PATCH', { 'content-type': 'application/apply-patch+yaml' }],
    ['merge', 'PATCH', { 'content-type': 'application/merge-patch+json' }],
  ] as const)
    test(`${name} of an object without data is refused`, async () => {
      const { body } = await server.request('GET', `${secrets}/db?omitData=true`)
      delete body.metadata.managedFields
      const query = name === 'apply' ? '?fieldManager=x&force=true' : ''
      const answer = await server.request(method, `${secrets}/db${query}`, { body, headers })
      assert.equal(answer.status, 422, answer.text)
    })

  test('every spelling either omits the data or records the read', async () => {
    const spellings = ['omitData=1&omitData=0', 'omitData=0&omitData=1', 'OmitData=true', 'omitData', 'omitData=no']
    const more = ['omitData=FALSE', 'omitData=%66alse', 'omitData=true%00', 'omitData=true;omitData=0', '%6fmitData=1']
    const accepts = ['application/json', 'application/yaml', 'application/json;as=Table;v=v1;g=meta.k8s.io']
    const wrong: string[] = []
    let [count, shown] = [0, 0]
    for (const spelling of [...spellings, ...more])
      for (const accept of accepts)
        for (const isList of [false, true])
          for (const include of ['', '&includeObject=Object']) {
            const name = `s${count++}`
            const spec = { stringData: { password: 'canary-12' } }
            await server.request('POST', secrets, { body: { metadata: { name }, spec } })
            const path = isList ? `?fieldSelector=metadata.name%3D${name}&` : `/${name}?`
            const url = `${secrets}${path}${spelling}${include}`
            const { status, text } = await server.request('GET', url, { headers: { accept } })
            assert.equal(status, 200)
            const shows = text.includes(Buffer.from('canary-12').toString('base64'))
            if (shows) shown++
            const { body } = await server.request('GET', `${secrets}/${name}/lastread`)
            if (shows !== (body.status?.lastRead !== undefined)) wrong.push(`${shows} ${accept} ${url}`)
          }
    assert.deepEqual(wrong, [])
    assert.ok(shown > 0 && shown < count, `${shown} of ${count}`)
  })
})
