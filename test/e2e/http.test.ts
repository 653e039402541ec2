// HTTP over real sockets: protocols, formats, headers, discovery, OpenAPI, health, metrics and reviews (wire §1.2–§1.6, §1.16).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { IncomingMessage } from 'node:http'
import { connect as connectHttp2 } from 'node:http2'
import { Agent, request } from 'node:https'
import { after, before, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { type Server, startServer } from '../support/server.ts'
import { base, eventually, group, openWire, type Sent, type Wire } from '../support/wire.ts'

const teams = `${group}/teams`
const json = { 'content-type': 'application/json' }
const tableOf = (version = 'v1') => ({ accept: `application/json;as=Table;v=${version};g=meta.k8s.io` })

describe('HTTP', { timeout: 120_000 }, () => {
  let server: Server
  let wire: Wire
  before(async () => {
    server = await startServer({ storage: 'memory' })
    wire = openWire(server)
    for (const name of ['web', 'db'])
      assert.equal((await post(teams, { metadata: { name }, spec: { displayName: name } })).code, 201)
  })
  after(() => server.stop())
  const post = (path: string, body: object, sent: Sent = {}) =>
    wire(path, { method: 'POST', ...sent, headers: { ...json, ...sent.headers }, body: JSON.stringify(body) })

  describe('protocols', () => {
    test('TLS speaks h2 and http/1.1 by ALPN, from TLS 1.2 on', async () => {
      const { hostname, port } = new URL(server.https)
      for (const [offered, chosen] of [
        [['h2', 'http/1.1'], 'h2'],
        [['http/1.1'], 'http/1.1'],
        [['h2'], 'h2'],
      ] as const) {
        const socket = connectTls({
          host: hostname,
          port: Number(port),
          ca: server.ca,
          servername: 'localhost',
          ALPNProtocols: [...offered],
        })
        await once(socket, 'secureConnect')
        assert.equal(socket.alpnProtocol, chosen)
        assert.match(socket.getProtocol() ?? '', /^TLSv1\.[23]$/)
        socket.destroy()
      }
    })

    test('a request over HTTP/2 gets the same response as over HTTP/1.1', async () => {
      const session = connectHttp2(server.https, { ca: server.ca, servername: 'localhost' })
      const ask = async (headers: object, body?: string) => {
        const stream = session.request({ authorization: `Bearer ${server.adminKey}`, ...headers } as never)
        stream.end(body)
        const [answered] = await once(stream, 'response')
        let text = ''
        for await (const chunk of stream.setEncoding('utf8')) text += chunk
        return { headers: answered as { [name: string]: unknown }, text }
      }
      const got = await ask({ ':path': `${teams}/web` })
      assert.equal(got.headers[':status'], 200)
      assert.equal(got.text, (await wire(`${teams}/web`)).text)
      const body = JSON.stringify({ metadata: { name: 'over-h2', zzz: 1 } })
      const made = await ask({ ':method': 'POST', ':path': teams, 'content-type': 'application/json' }, body)
      assert.equal(made.headers[':status'], 201)
      assert.equal(made.headers['warning'], '299 - "unknown field \\"metadata.zzz\\""')
      const head = await ask({ ':method': 'HEAD', ':path': `${teams}/web` })
      assert.deepEqual([head.headers[':status'], head.text], [200, ''])
      assert.equal((await ask({ ':path': '/nowhere' })).headers[':status'], 404)
      session.close()
    })

    test('characters of every alphabet are preserved, in short and in long responses', async () => {
      for (const [name, times] of [
        ['short', 1],
        ['long', 2000],
      ] as const) {
        const description = 'Zürich 東京 \u2028 🦊 '.repeat(times)
        const made = await post(teams, { metadata: { name }, spec: { description } })
        const got = await wire(`${teams}/${name}`)
        for (const { json: object, text, headers } of [made, got]) {
          assert.equal(object.spec.description, description)
          assert.equal(headers['content-length'], String(Buffer.byteLength(text)))
          assert.ok(text.endsWith('}\n'))
        }
      }
    })

    test('a write without a body on a kept connection gets a response, and so do the next requests', async () => {
      const agent = new Agent({ keepAlive: true, maxSockets: 1, ca: server.ca, servername: 'localhost' })
      const ask = async (method: string, path: string, headers: object = {}) => {
        const all = { authorization: `Bearer ${server.adminKey}`, ...headers }
        const call = request(server.https + path, { agent, method, headers: all })
        call.end()
        const [answer] = (await once(call, 'response')) as [IncomingMessage]
        answer.resume()
        await once(answer, 'end')
        return answer.statusCode
      }
      assert.equal((await post(teams, { metadata: { name: 'bodiless' } })).code, 201)
      assert.equal(await ask('POST', teams), 400)
      assert.equal(await ask('DELETE', `${teams}/bodiless`), 200)
      assert.equal(await ask('GET', `${teams}/bodiless`), 404)
      assert.equal(await ask('GET', `${teams}/web`, { authorization: 'Bearer nobody' }), 401)
      assert.equal(await ask('GET', `${teams}/web`), 200)
      agent.destroy()
    })

    test('HEAD is GET without a body, OPTIONS is 405 (wire §1.16)', async () => {
      for (const path of [`${teams}/web`, teams, `${base}/version`, '/livez']) {
        const [head, get] = [await wire(path, { method: 'HEAD' }), await wire(path)]
        assert.equal(head.code, 200)
        assert.equal(head.text, '')
        assert.equal(head.headers['content-length'], get.headers['content-length'])
        assert.equal(head.headers['content-type'], get.headers['content-type'])
      }
      assert.equal((await wire(`${teams}/none`, { method: 'HEAD' })).code, 404)
      assert.equal((await wire(teams, { method: 'OPTIONS' })).code, 405)
    })
  })

  describe('formats and headers', () => {
    test('YAML in, YAML out; no content type is YAML too (D4, SPEC §4)', async () => {
      const body =
        'apiVersion: management.platform.sh/v1\nkind: Team\nmetadata:\n  name: yaml\nspec:\n  displayName: yes\n  users: [ada, "2"]\nstatus: {}\n'
      const headers = { 'content-type': 'application/yaml', accept: 'application/yaml' }
      const made = await wire(teams, { method: 'POST', headers, body })
      assert.equal(made.code, 201)
      assert.equal(made.headers['content-type'], 'application/yaml')
      assert.match(made.text, /^ {2}displayName: "yes"$/m)
      assert.match(made.text, /^ {2}users:\n {2}- ada\n {2}- "2"$/m)
      assert.equal((await wire(teams, { method: 'POST', body: 'metadata: {name: bare}' })).code, 201)
      const list = await wire(teams, { headers: { accept: 'application/yaml' } })
      assert.match(list.text, /^kind: TeamList$/m)
      assert.equal((await wire(teams, { method: 'POST', headers: json, body })).code, 400, 'YAML sent as JSON')
      assert.equal(
        (
          await wire(teams, {
            method: 'POST',
            headers: { 'content-type': 'application/json; charset=utf-8' },
            body: '{"metadata":{"name":"charset"}}',
          })
        ).code,
        201,
      )
    })

    test('responses end in a newline, and are indented for browsers and curl (wire §1.2)', async () => {
      const plain = await wire(`${teams}/web`)
      assert.match(plain.text, /^\{"apiVersion":[^\n]*\}\n$/)
      for (const [path, headers] of [
        [`${teams}/web?pretty=true`, {}],
        [`${teams}/web`, { 'user-agent': 'curl/8.0' }],
        [`${teams}?pretty=1`, {}],
      ] as const) {
        const pretty = await wire(path, { headers })
        assert.match(pretty.text, /^\{\n {2}"apiVersion": /)
        assert.ok(pretty.text.endsWith('\n}\n'))
      }
      assert.equal(
        (await wire(`${teams}/web?pretty=false`, { headers: { 'user-agent': 'curl/8.0' } })).text,
        plain.text,
      )
    })

    test('only bodies above 128 KiB are compressed, and only for clients that accept it (wire §1.2)', async () => {
      const gzip = { 'accept-encoding': 'gzip' }
      const annotations = { big: 'x'.repeat(200_000) }
      await post(teams, { metadata: { name: 'large', annotations } })
      const zipped = await wire(`${teams}/large`, { headers: gzip })
      const clear = await wire(`${teams}/large`)
      assert.equal(zipped.headers['content-encoding'], 'gzip')
      assert.match(String(zipped.headers['vary']), /Accept-Encoding/)
      assert.equal(clear.headers['content-encoding'], undefined)
      assert.equal(zipped.text, clear.text)
      assert.equal((await wire(`${teams}/web`, { headers: gzip })).headers['content-encoding'], undefined)
      for (const [accepted, encoding] of [
        ['gzip;q=0', undefined],
        ['deflate, GZIP; q=0.0', undefined],
        ['*;q=0', undefined],
        ['gzip;q=0, *', undefined],
        ['x-gzip-not', undefined],
        ['br, gzip;q=0.5', 'gzip'],
        ['*', 'gzip'],
      ] as const)
        assert.equal(
          (await wire(`${teams}/large`, { headers: { 'accept-encoding': accepted } })).headers['content-encoding'],
          encoding,
          accepted,
        )
      await wire(`${teams}/large`, { method: 'DELETE' })
    })

    test('Audit-Id is echoed, or generated (wire §1.2)', async () => {
      const id = '11111111-2222-4333-8444-555555555555'
      assert.equal((await wire(teams, { headers: { 'audit-id': id } })).headers['audit-id'], id)
      const one = (await wire(teams)).headers['audit-id']
      assert.match(String(one), /^[0-9a-f-]{36}$/)
      assert.notEqual(one, (await wire(teams)).headers['audit-id'])
      assert.match(
        String((await wire(teams, { headers: { 'audit-id': 'no good!' } })).headers['audit-id']),
        /^[0-9a-f-]{36}$/,
      )
      const { headers } = await wire(`${teams}/web`)
      assert.equal(headers['cache-control'], 'no-cache, private')
      assert.equal(headers['content-type'], 'application/json')
      assert.ok(headers['date'])
    })

    test('warnings are one header each, escaped, in UTF-8, without duplicates (wire §1.2)', async () => {
      const body = '{"metadata":{"name":"warned","a\\"b":1,"c\\\\d":1,"é":1,"€":1,"x\\r\\nEvil: yes":1,"e":1,"e":2}}'
      const { code, warnings, headers } = await wire(teams, { method: 'POST', headers: json, body })
      assert.equal(code, 201)
      assert.equal(headers['evil'], undefined)
      const texts = warnings.map(text => Buffer.from(text, 'latin1').toString())
      assert.deepEqual(texts, [
        '299 - "duplicate field \\"metadata.e\\""',
        '299 - "unknown field \\"metadata.a\\"b\\""',
        '299 - "unknown field \\"metadata.c\\\\d\\""',
        '299 - "unknown field \\"metadata.é\\""',
        '299 - "unknown field \\"metadata.€\\""',
        '299 - "unknown field \\"metadata.x  Evil: yes\\""',
        '299 - "unknown field \\"metadata.e\\""',
      ])
    })

    test('warnings are bounded: 4096 characters in all (wire §1.2)', async () => {
      const fields = Array.from({ length: 100 }, (_, at) => [`${'f'.repeat(200)}${at}`, 1])
      const { warnings } = await post(`${teams}?dryRun=All`, {
        metadata: { name: 'many' },
        spec: Object.fromEntries(fields),
      })
      assert.ok(warnings.length > 5)
      assert.ok(warnings.join('').length < 5000)
    })

    test('duplicate keys: Warn warns, Strict rejects, Ignore is silent, the last one wins (wire §1.8)', async () => {
      const body = '{"metadata":{"name":"twice"},"spec":{"displayName":"a","displayName":"b"}}'
      const send = (validation: string) =>
        wire(`${teams}?dryRun=All${validation}`, { method: 'POST', headers: json, body })
      const warned = await send('')
      assert.deepEqual(warned.warnings, ['299 - "duplicate field \\"spec.displayName\\""'])
      assert.equal(warned.json.spec.displayName, 'b')
      assert.deepEqual((await send('&fieldValidation=Ignore')).warnings, [])
      const strict = await send('&fieldValidation=Strict')
      assert.equal(strict.code, 400)
      assert.equal(
        strict.json.message,
        'Team in version "v1" cannot be handled as a Team: strict decoding error: duplicate field "spec.displayName"',
      )
      const yaml = 'metadata:\n  name: twice\nspec:\n  displayName: a\n  displayName: b\n'
      const inYaml = await wire(`${teams}?dryRun=All`, {
        method: 'POST',
        headers: { 'content-type': 'application/yaml' },
        body: yaml,
      })
      assert.deepEqual(inYaml.warnings, ['299 - "line 5: key \\"displayName\\" already set in map"'])
    })

    test('the user agent is the default field manager (wire §1.14)', async () => {
      const made = await post(
        `${teams}?dryRun=All`,
        { metadata: { name: 'agent' }, spec: {} },
        { headers: { 'user-agent': 'kubectl/v1.32 (linux)' } },
      )
      assert.equal(made.json.metadata.managedFields[0].manager, 'kubectl')
    })
  })

  describe('views', () => {
    test('a Table has columns, rows and metadata; includeObject selects the object (wire §1.6)', async () => {
      const table = await wire(teams, { headers: tableOf() })
      assert.equal(table.headers['content-type'], 'application/json;as=Table;v=v1;g=meta.k8s.io')
      assert.deepEqual([table.json.kind, table.json.apiVersion], ['Table', 'meta.k8s.io/v1'])
      assert.match(table.json.metadata.resourceVersion, /^\d+$/)
      const [name, ...columns] = table.json.columnDefinitions
      assert.deepEqual([name.name, name.format, name.type], ['Name', 'name', 'string'])
      assert.equal(columns.at(-1).name, 'Age')
      const row = table.json.rows.find((one: { cells: string[] }) => one.cells[0] === 'web')
      assert.equal(row.cells.length, table.json.columnDefinitions.length)
      assert.match(row.cells.at(-1), /^\d+s$/)
      assert.deepEqual(Object.keys(row.object).toSorted(), ['apiVersion', 'kind', 'metadata'])
      assert.equal(row.object.kind, 'PartialObjectMetadata')
      const withObject = async (include: string) =>
        (await wire(`${teams}/web?includeObject=${include}`, { headers: tableOf() })).json.rows[0].object
      assert.equal(await withObject('None'), null)
      assert.equal((await withObject('Object')).spec.displayName, 'web')
      assert.equal((await wire(`${teams}?includeObject=Foo`, { headers: tableOf() })).code, 400)
      assert.equal((await wire(teams, { headers: tableOf('v1beta1') })).json.apiVersion, 'meta.k8s.io/v1beta1')
      const pages = await wire(`${teams}?limit=1`, { headers: tableOf() })
      assert.ok(pages.json.metadata.continue)
      assert.ok(pages.json.metadata.remainingItemCount > 0)
      const made = await post(`${teams}?dryRun=All`, { metadata: { name: 'tabled' } }, { headers: tableOf() })
      assert.deepEqual([made.code, made.json.kind], [201, 'Table'])
      assert.equal((await wire(`${teams}/none`, { headers: tableOf() })).json.kind, 'Status')
    })

    test('PartialObjectMetadata for one, PartialObjectMetadataList for many (wire §1.6)', async () => {
      const as = (word: string) => ({ accept: `application/json;as=${word};v=v1;g=meta.k8s.io` })
      const one = (await wire(`${teams}/web`, { headers: as('PartialObjectMetadata') })).json
      assert.deepEqual(
        [one.kind, one.apiVersion, one.metadata.name, one.spec],
        ['PartialObjectMetadata', 'meta.k8s.io/v1', 'web', undefined],
      )
      const many = (await wire(teams, { headers: as('PartialObjectMetadataList') })).json
      assert.deepEqual([many.kind, many.items[0].kind], ['PartialObjectMetadataList', 'PartialObjectMetadata'])
      assert.equal((await wire(teams, { headers: as('PartialObjectMetadata') })).code, 406)
      assert.equal((await wire(`${teams}/web`, { headers: as('PartialObjectMetadataList') })).code, 406)
      const either = { accept: `${as('Frog').accept},application/json` }
      assert.equal((await wire(teams, { headers: either })).json.kind, 'TeamList')
    })

    test('metadata views omit annotations that the kind encrypts, on get, list and watch (D28)', async () => {
      const secrets = `${group}/namespaces/default/sharedsecrets`
      const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'
      const annotations = { [lastApplied]: '{"spec":{"data":{"k":"c2VhbGVkLXdvcmQ="}}}', note: 'kept' }
      const made = await post(secrets, { metadata: { name: 'viewed', annotations }, spec: { data: {} } })
      assert.equal(made.code, 201)
      const as = (word: string) => ({ accept: `application/json;as=${word};v=v1;g=meta.k8s.io` })
      const initial = '?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dviewed'
      for (const [path, word] of [
        [`${secrets}/viewed`, 'Table'],
        [`${secrets}/viewed`, 'PartialObjectMetadata'],
        [secrets, 'Table'],
        [secrets, 'PartialObjectMetadataList'],
        [`${secrets}${initial}`, 'Table'],
        [`${secrets}${initial}`, 'PartialObjectMetadata'],
      ] as const) {
        const { code, text } = await wire(path, { headers: as(word) })
        assert.equal(code, 200, `${word} of ${path}`)
        assert.ok(text.includes('"note":"kept"'), `${word} of ${path}: ${text}`)
        assert.doesNotMatch(text, /c2VhbGVkLXdvcmQ|last-applied-configuration":"/, `${word} of ${path}`)
      }
      const whole = (await wire(`${secrets}/viewed`)).json
      assert.equal(whole.metadata.annotations[lastApplied], annotations[lastApplied])
    })

    test('no view shows a key or a hidden field (D13, D21)', async () => {
      const spec = { user: 'ada', identity: { connectorData: 'c0nn3ct' } }
      const made = await post(`${group}/ownedaccesskeys`, { metadata: { name: 'viewed' }, spec })
      const { key } = made.json.spec
      for (const path of [
        `${group}/ownedaccesskeys?includeObject=Object`,
        `${group}/ownedaccesskeys/viewed?includeObject=Object`,
      ])
        for (const headers of [tableOf(), {}, { accept: 'application/yaml' }]) {
          const { text } = await wire(path, { headers })
          for (const word of [key, 'c0nn3ct', 'digest']) assert.equal(text.includes(word), false)
        }
      assert.equal(server.output().includes(key), false)
    })
  })

  describe('discovery and OpenAPI', () => {
    const aggregated = (version: string) => ({
      accept: `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList,application/json`,
    })

    test('legacy discovery lists groups, versions and resources (wire §1.3)', async () => {
      const groups = (await wire(`${base}/apis`)).json
      assert.equal(groups.kind, 'APIGroupList')
      const own = {
        name: 'management.platform.sh',
        versions: [{ groupVersion: 'management.platform.sh/v1', version: 'v1' }],
      }
      const found = groups.groups.find((one: { name: string }) => one.name === own.name)
      assert.deepEqual(found, { ...own, preferredVersion: own.versions[0] })
      assert.deepEqual((await wire(`${base}/apis/management.platform.sh`)).json, {
        kind: 'APIGroup',
        apiVersion: 'v1',
        ...found,
      })
      const list = (await wire(group)).json
      assert.deepEqual([list.kind, list.groupVersion], ['APIResourceList', 'management.platform.sh/v1'])
      const team = list.resources.find((one: { name: string }) => one.name === 'teams')
      assert.deepEqual(team.verbs, ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'])
      assert.ok(list.resources.some((one: { name: string }) => one.name === 'teams/status'))
      assert.equal((await wire(`${base}/api`)).json.kind, 'APIVersions')
      assert.ok((await wire(`${base}/`)).json.paths.includes('/apis'))
      assert.equal((await wire(base)).code, 200)
    })

    test('aggregated discovery in v2 and v2beta1, with ETag and 304 (wire §1.3)', async () => {
      for (const version of ['v2', 'v2beta1'])
        for (const path of ['/api', '/apis']) {
          const reply = await wire(base + path, { headers: aggregated(version) })
          assert.equal(
            reply.headers['content-type'],
            `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
          )
          assert.deepEqual(
            [reply.json.kind, reply.json.apiVersion],
            ['APIGroupDiscoveryList', `apidiscovery.k8s.io/${version}`],
          )
          assert.match(String(reply.headers['etag']), /^"[0-9A-F]{128}"$/)
          assert.equal(reply.headers['vary'], 'Accept')
          assert.equal(reply.headers['cache-control'], 'public')
          const again = await wire(base + path, {
            headers: { ...aggregated(version), 'if-none-match': String(reply.headers['etag']) },
          })
          assert.deepEqual([again.code, again.text], [304, ''])
        }
      const { items } = (await wire(`${base}/apis`, { headers: aggregated('v2') })).json
      const own = items.find((one: { metadata: { name: string } }) => one.metadata.name === 'management.platform.sh')
      const team = own.versions[0].resources.find((one: { resource: string }) => one.resource === 'teams')
      assert.deepEqual(team.responseKind, { group: 'management.platform.sh', version: 'v1', kind: 'Team' })
      assert.equal(team.scope, 'Cluster')
      const subresources = team.subresources.map((one: { subresource: string }) => one.subresource)
      assert.ok(subresources.includes('status'))
    })

    test('OpenAPI v3 by hash: 200 with a long cache time, 301 to the current hash, 304; v2 in JSON and protobuf (wire §1.4)', async () => {
      const index = (await wire(`${base}/openapi/v3`)).json.paths
      const url: string = index['apis/management.platform.sh/v1'].serverRelativeURL
      const path = url.startsWith(base) ? url : base + url
      const right = await wire(path)
      assert.equal(right.code, 200)
      assert.equal(right.headers['cache-control'], 'public, immutable')
      assert.ok(Date.parse(String(right.headers['expires'])) > Date.now() + 300 * 24 * 3600 * 1000)
      assert.equal(right.json.openapi, '3.0.0')
      const wrong = await wire(path.replace(/hash=.*/, 'hash=ABC'))
      assert.deepEqual([wrong.code, wrong.headers['location']], [301, url])
      const bare = await wire(path.replace(/\?.*/, ''))
      assert.deepEqual([bare.code, bare.headers['cache-control']], [200, 'no-cache, private'])
      const same = await wire(path, { headers: { 'if-none-match': String(right.headers['etag']) } })
      assert.deepEqual([same.code, same.text], [304, ''])
      assert.equal((await wire(`${base}/openapi/v3/apis/none/v1`)).code, 404)
      assert.equal((await wire(`${base}/openapi/v2`)).json.swagger, '2.0')
      const proto = { accept: 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf' }
      const binary = await wire(`${base}/openapi/v2`, { headers: proto })
      assert.deepEqual(
        [binary.code, binary.headers['content-type']],
        [200, 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf'],
      )
    })

    test('/version shows which API conventions to expect (wire §0, §1.3)', async () => {
      const version = (await wire(`${base}/version`, { key: '' })).json
      assert.deepEqual([version.major, version.minor], ['1', '32'])
      for (const name of ['gitVersion', 'gitCommit', 'gitTreeState', 'buildDate', 'goVersion', 'compiler', 'platform'])
        assert.equal(typeof version[name], 'string', name)
    })
  })

  describe('health and metrics', () => {
    test('health answers ok, verbosely, without some checks, check by check (wire §1.5)', async () => {
      for (const at of ['', base])
        for (const page of ['livez', 'readyz', 'healthz']) {
          const plain = await wire(`${at}/${page}`, { key: '' })
          assert.deepEqual(
            [plain.code, plain.text, plain.headers['content-type']],
            [200, 'ok', 'text/plain; charset=utf-8'],
          )
          const verbose = (await wire(`${at}/${page}?verbose`, { key: '' })).text
          assert.match(verbose, /^\[\+\]ping ok\n/)
          assert.ok(verbose.endsWith(`${page} check passed\n`))
        }
      assert.match((await wire('/readyz?verbose&exclude=storage')).text, /^\[\+\]storage excluded: ok$/m)
      assert.equal((await wire('/readyz/storage')).text, 'ok')
      assert.equal((await wire('/livez/none')).code, 404)
    })

    test("metrics have kube-apiserver's names, and no labels from client input (D1)", async () => {
      await wire(`${teams}/some-name-of-mine`)
      const { text, headers } = await wire('/metrics')
      assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8')
      for (const name of [
        'apiserver_request_total',
        'apiserver_request_duration_seconds_bucket',
        'apiserver_request_duration_seconds_count',
        'apiserver_current_inflight_requests',
        'apiserver_longrunning_requests',
        'apiserver_storage_objects',
        'process_resident_memory_bytes',
        'process_cpu_seconds_total',
        'process_start_time_seconds',
      ])
        assert.match(text, new RegExp(`^${name}(\\{| )`, 'm'))
      assert.match(text, /^apiserver_request_total\{[^}]*code="404"[^}]*resource="teams"[^}]*verb="GET"[^}]*\} \d+$/m)
      assert.match(text, /^# TYPE apiserver_request_total counter$/m)
      assert.match(text, /^# TYPE process_cpu_seconds_total counter$/m)
      assert.match(text, /^# TYPE process_resident_memory_bytes gauge$/m)
      assert.equal(text.includes('some-name-of-mine'), false)
    })
  })

  describe('reviews', () => {
    const type = { 'content-type': 'application/vnd.kubernetes.protobuf' }
    const field = (number: number, value: string | Buffer) => {
      const bytes = Buffer.from(value as string)
      return Buffer.concat([Buffer.from([(number << 3) | 2, bytes.length]), bytes])
    }
    const wrapped = (apiVersion: string, kind: string, raw: Buffer) =>
      Buffer.concat([
        Buffer.from('k8s\0'),
        field(1, Buffer.concat([field(1, apiVersion), field(2, kind)])),
        field(2, raw),
        field(3, ''),
        field(4, ''),
      ])
    const review = (path: string, body: Buffer) => wire(`${base}/apis/${path}`, { method: 'POST', headers: type, body })

    test('SelfSubjectAccessReview in protobuf (wire §1.16)', async () => {
      const attributes = Buffer.concat([
        field(1, 'default'),
        field(2, 'get'),
        field(3, 'management.platform.sh'),
        field(5, 'teams'),
      ])
      const raw = Buffer.concat([field(1, ''), field(2, field(1, attributes))])
      const { code, json: answer } = await review(
        'authorization.k8s.io/v1/selfsubjectaccessreviews',
        wrapped('authorization.k8s.io/v1', 'SelfSubjectAccessReview', raw),
      )
      assert.equal(code, 201)
      assert.equal(answer.status.allowed, true)
      assert.deepEqual(answer.spec.resourceAttributes, {
        namespace: 'default',
        verb: 'get',
        group: 'management.platform.sh',
        resource: 'teams',
      })
      const path = field(2, field(2, Buffer.concat([field(1, '/metrics'), field(2, 'get')])))
      const other = await review(
        'authorization.k8s.io/v1/selfsubjectaccessreviews',
        wrapped('authorization.k8s.io/v1', 'SelfSubjectAccessReview', path),
      )
      assert.deepEqual(other.json.spec.nonResourceAttributes, { path: '/metrics', verb: 'get' })
      assert.equal(
        (
          await review(
            'authorization.k8s.io/v1/selfsubjectaccessreviews',
            wrapped('authorization.k8s.io/v1', 'SelfSubjectAccessReview', Buffer.alloc(0)),
          )
        ).code,
        422,
      )
    })

    test('SelfSubjectRulesReview in protobuf (wire §1.16)', async () => {
      const at = 'authorization.k8s.io/v1/selfsubjectrulesreviews'
      const { code, json: answer } = await review(
        at,
        wrapped('authorization.k8s.io/v1', 'SelfSubjectRulesReview', field(2, field(1, 'default'))),
      )
      assert.equal(code, 201)
      assert.equal(answer.status.incomplete, false)
      assert.deepEqual(answer.status.resourceRules[0].verbs, ['*'])
      const none = await review(at, wrapped('authorization.k8s.io/v1', 'SelfSubjectRulesReview', Buffer.alloc(0)))
      assert.deepEqual([none.code, none.json.message], [400, 'no namespace on request'])
    })

    test('SelfSubjectReview in protobuf and JSON (wire §1.16)', async () => {
      const at = 'authentication.k8s.io/v1/selfsubjectreviews'
      const proto = await review(at, wrapped('authentication.k8s.io/v1', 'SelfSubjectReview', Buffer.alloc(0)))
      assert.equal(proto.code, 201)
      const { username, groups } = proto.json.status.userInfo
      assert.equal(username, 'admin')
      assert.ok(groups.includes('system:authenticated') && groups.includes('platform:user:admin'))
      assert.deepEqual((await post(`${base}/apis/${at}`, {})).json.status, proto.json.status)
      assert.deepEqual((await post(`${base}/apis/${at}?dryRun=All`, {})).json.status, proto.json.status)
    })

    test('invalid protobuf, or of another kind, is 400 (wire §1.16)', async () => {
      const at = 'authentication.k8s.io/v1/selfsubjectreviews'
      for (const body of [
        Buffer.from('nope'),
        Buffer.from('k8s\0\xff\xff'),
        wrapped('v1', 'Pod', Buffer.alloc(0)),
        Buffer.from('k8s\0\x0a\x7f'),
      ])
        assert.equal((await review(at, body)).code, 400)
    })
  })

  test('an object with a grace period is deleted when it ends (D10)', async () => {
    await post(teams, { metadata: { name: 'going' } })
    const going = await wire(`${teams}/going?gracePeriodSeconds=2`, { method: 'DELETE' })
    assert.equal(going.json.metadata.deletionGracePeriodSeconds, 2)
    assert.equal((await wire(`${teams}/going`)).code, 200)
    await eventually('it is gone', async () => (await wire(`${teams}/going`)).code === 404)
  })
})
