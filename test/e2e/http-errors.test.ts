// Every error response, byte by byte: the Status, its headers, and the order of checks (wire §1.1, §1.16).

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { after, before, describe, test } from 'node:test'
import { type Server, startServer } from '../support/server.ts'
import { base, eventually, group, openBare, openWire, type Reply, type Wire } from '../support/wire.ts'

const teams = `${group}/teams`
const json = { 'content-type': 'application/json' }

/** The whole body is this Status, and nothing else. */
function isStatus(reply: Reply, code: number, reason: string, message: string, details?: object): void {
  const expected = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', message, reason }
  assert.deepEqual(reply.json, { ...expected, ...(details ? { details } : {}), code })
  assert.equal(reply.code, code)
  assert.equal(reply.headers['content-type'], 'application/json')
  assert.ok(reply.headers['audit-id'])
  assert.ok(reply.text.endsWith('}\n'))
}

describe('error responses', { timeout: 120_000 }, () => {
  let server: Server
  let wire: Wire
  let yetToCome: Promise<Reply>
  let expiring: { key: string }
  before(async () => {
    server = await startServer({ storage: 'memory' })
    wire = openWire(server)
    // Slow requests run while the other tests run.
    yetToCome = wire(`${teams}?resourceVersion=99999999`)
    expiring = await makeKey({ ttl: 1 })
  })
  after(() => server.stop())

  const makeKey = async (spec: object = {}, metadata: object = {}) => {
    const body = JSON.stringify({ metadata, spec: { user: 'ada', ...spec } })
    const { code, json: made } = await wire(`${group}/ownedaccesskeys`, { method: 'POST', headers: json, body })
    assert.equal(code, 201)
    return { key: made.spec.key as string, path: `${group}/ownedaccesskeys/${made.metadata.name}` }
  }
  const whoami = (key: string) =>
    wire(`${base}/apis/authentication.k8s.io/v1/selfsubjectreviews`, { method: 'POST', headers: json, body: '{}', key })

  describe('401', () => {
    const is401 = (reply: Reply, message: string) => {
      isStatus(reply, 401, 'Unauthorized', message)
      assert.equal(reply.headers['www-authenticate'], 'Bearer')
    }

    test('a missing key, and a header that is not a bearer header (D18)', async () => {
      is401(await wire(teams, { key: '' }), 'no access key was sent: send Authorization: Bearer <ACCESS_KEY>')
      for (const authorization of ['Basic YTpi', 'Bearer', 'Bearer a b', 'nonsense'])
        is401(
          await wire(teams, { key: '', headers: { authorization } }),
          'malformed Authorization header: send Authorization: Bearer <ACCESS_KEY>',
        )
    })

    test('a mistyped key gets another message than an unknown one (D12, D18)', async () => {
      const typo = server.adminKey.replace(/.$/, last => (last === 'a' ? 'b' : 'a'))
      is401(await wire(teams, { key: typo }), 'malformed access key: its checksum is wrong, so it was mistyped or cut')
      is401(
        await wire(teams, { key: server.adminKey.slice(0, -3) }),
        'malformed access key: its checksum is wrong, so it was mistyped or cut',
      )
      is401(await wire(teams, { key: 'x'.repeat(40) }), 'unknown access key')
    })

    test('a key works from the next request on, until it is disabled or deleted (D17, D18)', async () => {
      for (let round = 0; round < 5; round++) {
        const { key, path } = await makeKey()
        assert.equal((await whoami(key)).code, 201)
        const patch = { method: 'PATCH', headers: { 'content-type': 'application/merge-patch+json' } }
        await wire(path, { ...patch, body: '{"spec":{"disabled":true}}' })
        is401(await whoami(key), 'access key is disabled')
        await wire(path, { ...patch, body: '{"spec":{"disabled":false}}' })
        assert.equal((await whoami(key)).code, 201)
        await wire(path, { method: 'DELETE' })
        is401(await whoami(key), 'access key was deleted')
      }
    })

    test('a terminating key does not authenticate, with or without finalizers (D18)', async () => {
      const { key, path } = await makeKey({}, { finalizers: ['x.io/wait'] })
      assert.equal((await wire(path, { method: 'DELETE' })).json.metadata.deletionGracePeriodSeconds, 0)
      is401(await whoami(key), 'access key was deleted')
    })

    test('a key expires (D18)', async () => {
      await eventually('the key expires', async () => (await whoami(expiring.key)).code === 401)
      const reply = await whoami(expiring.key)
      is401(reply, 'access key expired')
    })

    test('authentication comes first: unknown paths, methods and bodies are 401 too (wire §1.16)', async () => {
      for (const sent of [{}, { method: 'OPTIONS' }, { method: 'POST', body: '{{{' }])
        for (const path of ['/nowhere', `${base}/apis/none/v1/x`, teams])
          assert.equal((await wire(path, { ...sent, key: '' })).code, 401, `${JSON.stringify(sent)} ${path}`)
    })

    test('version and health are public (D27)', async () => {
      for (const path of [`${base}/version`, '/livez', '/readyz', `${base}/livez`, `${base}/readyz`, `${base}/healthz`])
        assert.equal((await wire(path, { key: '' })).code, 200, path)
      assert.equal((await wire('/metrics', { key: '' })).code, 401)
    })
  })

  describe('403', () => {
    test('names user, verb, resource and location, and hides whether the object exists (wire §1.1, §1.16)', async () => {
      const { key } = await makeKey({ user: 'alice' })
      const says = async (path: string, sent: object, message: string, details: object) =>
        isStatus(await wire(path, { ...sent, key }), 403, 'Forbidden', message, details)
      const cannot = (verb: string, what: string, where: string) =>
        `User "alice" cannot ${verb} resource "${what}" in API group "management.platform.sh" ${where}`
      const about = { group: 'management.platform.sh', kind: 'teams' }
      await says(
        `${teams}/x`,
        {},
        `teams.management.platform.sh "x" is forbidden: ${cannot('get', 'teams', 'at the cluster scope')}`,
        { name: 'x', ...about },
      )
      await says(
        teams,
        { method: 'DELETE' },
        `teams.management.platform.sh is forbidden: ${cannot('deletecollection', 'teams', 'at the cluster scope')}`,
        about,
      )
      await says(
        `${teams}/x/status`,
        { method: 'PUT' },
        `teams.management.platform.sh "x" is forbidden: ${cannot('update', 'teams/status', 'at the cluster scope')}`,
        { name: 'x', ...about },
      )
      await says(
        `${group}/namespaces/default/sharedsecrets`,
        { method: 'POST', body: '{{{' },
        `sharedsecrets.management.platform.sh is forbidden: ${cannot('create', 'sharedsecrets', 'in the namespace "default"')}`,
        { group: 'management.platform.sh', kind: 'sharedsecrets' },
      )
      await says('/metrics', {}, 'forbidden: User "alice" cannot get path "/metrics"', {})
    })

    test('impersonation without permission, or of an empty user, is rejected, never ignored (wire §1.16)', async () => {
      const { key } = await makeKey({ user: 'alice' })
      const reply = await wire(teams, { headers: { 'impersonate-user': 'eve' }, key })
      isStatus(
        reply,
        403,
        'Forbidden',
        'users "eve" is forbidden: User "alice" cannot impersonate resource "users" in API group "" at the cluster scope',
        { name: 'eve', kind: 'users' },
      )
      assert.equal(reply.headers['x-content-type-options'], 'nosniff')
      for (const header of ['impersonate-group', 'impersonate-uid', 'impersonate-extra-x'])
        assert.equal((await wire(teams, { headers: { [header]: 'eve' } })).code, 400, header)
    })
  })

  describe('404, 405, 400', () => {
    test('a missing path has one Status, whatever is wrong with the path (wire §1.7, §1.11)', async () => {
      for (const path of [
        '/nowhere',
        `${base}/nowhere`,
        `${base}/apis/none.example/v1/teams`,
        `${base}/apis/management.platform.sh/v9/teams`,
        `${group}/nothings`,
        `${teams}/a/nosub`,
        `${group}/namespaces/x/teams`,
        `${group}/sharedsecrets/a`,
        `${group}//teams`,
        `${teams}/a%2Fb`,
        `${teams}/%E0%A4`,
        '/kubernetes/managementx/version',
      ])
        isStatus(await wire(path), 404, 'NotFound', 'the server could not find the requested resource', {})
      isStatus(await wire(`${teams}/none`), 404, 'NotFound', 'teams.management.platform.sh "none" not found', {
        name: 'none',
        group: 'management.platform.sh',
        kind: 'teams',
      })
    })

    test('a trailing slash on a collection works (wire §1.7)', async () => {
      assert.equal((await wire(`${teams}/`)).json.kind, 'TeamList')
    })

    test('an unsupported verb is 405, named as verb (wire §1.1)', async () => {
      const says = async (method: string, path: string, verb: string, id: string) => {
        const [plural, ...rest] = id.split('.')
        const details = { ...(rest.length ? { group: rest.join('.') } : {}), kind: plural }
        isStatus(
          await wire(path, { method }),
          405,
          'MethodNotAllowed',
          `${verb} is not supported on resources of kind "${id}"`,
          details,
        )
      }
      await says('POST', `${teams}/a`, 'create', 'teams.management.platform.sh')
      await says('POST', `${teams}/a/status`, 'create', 'teams.management.platform.sh')
      await says('DELETE', `${teams}/a/status`, 'delete', 'teams.management.platform.sh')
      await says('POST', `${group}/sharedsecrets`, 'create', 'sharedsecrets.management.platform.sh')
      await says('DELETE', `${group}/sharedsecrets`, 'deletecollection', 'sharedsecrets.management.platform.sh')
      await says(
        'GET',
        `${base}/apis/authentication.k8s.io/v1/selfsubjectreviews`,
        'list',
        'selfsubjectreviews.authentication.k8s.io',
      )
      await says('OPTIONS', teams, 'options', 'teams.management.platform.sh')
      await says('OPTIONS', `${teams}/a`, 'options', 'teams.management.platform.sh')
      assert.equal((await wire(`${base}/version`, { method: 'OPTIONS' })).code, 405)
      assert.equal((await wire(`${base}/apis`, { method: 'POST', body: '{}' })).code, 405)
    })

    test('PUT and PATCH on a collection require a name (wire §1.9)', async () => {
      for (const method of ['PUT', 'PATCH'])
        isStatus(await wire(teams, { method, body: '{}' }), 400, 'BadRequest', 'name must be provided')
    })

    test('invalid options are 422 on their kind (wire §1.8)', async () => {
      const cases: [string, string, string][] = [
        [
          'POST',
          `${teams}?fieldValidation=Foo`,
          'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": supported values: "", "Ignore", "Strict", "Warn"',
        ],
        [
          'POST',
          `${teams}?dryRun=Some`,
          'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "Some": supported values: "All"',
        ],
        [
          'POST',
          `${teams}?dryRun=`,
          'CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "": supported values: "All"',
        ],
        [
          'DELETE',
          `${teams}/a?dryRun`,
          'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: "": supported values: "All"',
        ],
        [
          'PUT',
          `${teams}/a?fieldManager=${'m'.repeat(129)}`,
          'UpdateOptions.meta.k8s.io "" is invalid: fieldManager: Too long: may not be more than 128 bytes',
        ],
        [
          'DELETE',
          `${teams}/a?propagationPolicy=Foo`,
          'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Foo": supported values: "Background", "Foreground", "Orphan"',
        ],
        [
          'GET',
          `${teams}?sendInitialEvents=true`,
          'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list',
        ],
      ]
      for (const [method, path, message] of cases) {
        const reply = await wire(path, {
          method,
          headers: json,
          ...(method === 'POST' || method === 'PUT' ? { body: '{}' } : {}),
        })
        assert.deepEqual([reply.code, reply.json.reason, reply.json.message], [422, 'Invalid', message])
        assert.equal(Object.hasOwn(reply.json.details, 'name'), false, 'nothing has a name here')
      }
      const forced = await wire(`${teams}/a?force=true`, {
        method: 'PATCH',
        headers: { 'content-type': 'application/merge-patch+json' },
        body: '{}',
      })
      assert.equal(
        forced.json.message,
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      )
    })

    test('invalid numbers are 400 with the upstream message; booleans are everything but 0 and false (wire §1.8)', async () => {
      for (const path of [`${teams}?limit=abc`, `${teams}?watch=1&timeoutSeconds=abc`])
        isStatus(await wire(path), 400, 'BadRequest', 'strconv.ParseInt: parsing "abc": invalid syntax')
      for (const value of ['0', 'false', 'False'])
        assert.equal((await wire(`${teams}?watch=${value}`)).json.kind, 'TeamList')
    })

    test('an invalid timeout is 400, and a longer request ends with 504 (wire §1.16)', async () => {
      isStatus(
        await wire(`${teams}?timeout=abc`),
        400,
        'BadRequest',
        'invalid timeout specified in the request URL - time: invalid duration "abc"',
      )
      const message = 'Timeout: request did not complete within the allotted timeout'
      isStatus(await wire(`${teams}?resourceVersion=99999999&timeout=50ms`), 504, 'Timeout', message, {})
      const bare = await openBare(server.http)
      bare.socket.write(
        `POST ${teams}?timeout=50ms HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.adminKey}\r\nContent-Length: 9\r\n\r\n{`,
      )
      assert.match(await bare.until(message), /^HTTP\/1\.1 504 /)
      bare.socket.destroy()
    })

    test('a future version is 504 after a while (wire §1.11)', async () => {
      const reply = await yetToCome
      assert.equal(reply.code, 504)
      assert.match(reply.json.message, /^Timeout: Too large resource version: 99999999, current: \d+$/)
      assert.deepEqual(reply.json.details, {
        causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
        retryAfterSeconds: 1,
      })
    })

    test('a delete whose body and query contradict each other deletes nothing (D10)', async () => {
      await wire(teams, { method: 'POST', headers: json, body: '{"metadata":{"name":"kept"}}' })
      for (const [query, body] of [
        ['gracePeriodSeconds=5', '{"gracePeriodSeconds":6}'],
        ['propagationPolicy=Orphan', '{"propagationPolicy":"Background"}'],
      ])
        assert.equal(
          (await wire(`${teams}/kept?${query}`, { method: 'DELETE', headers: json, body: body as string })).code,
          400,
        )
      const beside = await wire(`${teams}/kept?dryRun=All`, {
        method: 'DELETE',
        headers: json,
        body: '{"propagationPolicy":"Background"}',
      })
      assert.ok([200, 400].includes(beside.code))
      for (const query of ['dryRun=', 'dryRun', 'dryRun=all', 'dryRun=&dryRun=All'])
        assert.equal((await wire(`${teams}/kept?${query}`, { method: 'DELETE' })).code, 422, query)
      assert.equal((await wire(`${teams}/kept`)).code, 200)
      const both = await wire(`${teams}/kept`, {
        method: 'DELETE',
        headers: json,
        body: '{"propagationPolicy":"Orphan","orphanDependents":true}',
      })
      assert.equal(both.code, 422)
      assert.equal(
        (await wire(`${teams}/kept`, { method: 'DELETE', headers: json, body: '{"kind":"Team"}' })).code,
        400,
      )
      assert.equal(
        (await wire(`${teams}/kept`, { method: 'DELETE', headers: { 'content-type': 'text/plain' }, body: 'x' })).code,
        415,
      )
    })
  })

  describe('406, 413, 415, 421', () => {
    test('406 lists the supported formats (wire §1.6)', async () => {
      for (const accept of [
        'application/vnd.kubernetes.protobuf',
        'text/html',
        'constructor',
        'toString, __proto__',
        'application/json;as=Frog;v=v1;g=meta.k8s.io',
      ])
        isStatus(
          await wire(teams, { headers: { accept } }),
          406,
          'NotAcceptable',
          'only the following media types are accepted: application/json, application/yaml',
        )
      const watch = await wire(`${teams}?watch=true`, { headers: { accept: 'application/yaml' } })
      assert.equal(watch.code, 406)
      assert.match(
        watch.text,
        /^message: "?'?only the following media types are accepted: application\/json;stream=watch/m,
      )
      for (const accept of [
        'application/vnd.kubernetes.protobuf,application/json',
        '*/*',
        'application/*',
        'text/html, */*;q=0.1',
      ])
        assert.equal((await wire(teams, { headers: { accept } })).json.kind, 'TeamList')
    })

    test('415 lists the supported media types (wire §1.6, §1.14)', async () => {
      for (const type of ['text/plain', 'text/yaml', 'application/x-yaml', 'application/vnd.kubernetes.protobuf'])
        isStatus(
          await wire(teams, { method: 'POST', headers: { 'content-type': type }, body: '{}' }),
          415,
          'UnsupportedMediaType',
          'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml',
        )
      for (const type of ['application/strategic-merge-patch+json', 'application/json', ''])
        isStatus(
          await wire(`${teams}/a`, { method: 'PATCH', headers: { 'content-type': type }, body: '{}' }),
          415,
          'UnsupportedMediaType',
          'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
        )
    })

    test('413 for more than 3 MiB, announced or not (D7)', async () => {
      const body = ' '.repeat(3 * 1024 * 1024 + 1)
      const message = 'Request entity too large: limit is 3145728'
      isStatus(await wire(teams, { method: 'POST', headers: json, body }), 413, 'RequestEntityTooLarge', message)
      const bare = await openBare(server.http)
      const { host } = new URL(server.http)
      bare.socket.write(
        `POST ${teams} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${server.adminKey}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n`,
      )
      const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`
      for (let count = 0; count < 50 && bare.socket.writable; count++)
        if (!bare.socket.write(chunk)) await Promise.race([once(bare.socket, 'drain'), once(bare.socket, 'close')])
      assert.match(
        await bare.until('"code":413'),
        /^HTTP\/1\.1 413 .*"message":"Request entity too large: limit is 3145728"/s,
      )
      bare.socket.destroy()
    })

    test('a client that is still sending receives the 413, not a reset', async () => {
      const body = Buffer.alloc(6 * 1024 * 1024, 0x20)
      const plain = openWire(server, 'http')
      for (let round = 0; round < 60; round++)
        assert.equal((await plain(teams, { method: 'POST', headers: json, body })).code, 413)
    })

    test('the 413 closes the connection of a client that never stops sending', async () => {
      const bare = await openBare(server.http)
      const { host } = new URL(server.http)
      bare.socket.write(
        `POST ${teams} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${server.adminKey}\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n`,
      )
      const dripping = setInterval(() => bare.socket.write(' '), 20)
      try {
        assert.match(await bare.ended(), /^HTTP\/1\.1 413 /)
      } finally {
        clearInterval(dripping)
        bare.socket.destroy()
      }
    })

    test('a Host that is not loopback gets 421, only on the plain listener (D1)', async () => {
      const plain = openWire(server, 'http')
      for (const host of ['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example:80'])
        isStatus(
          await plain(`${base}/version`, { headers: { host } }),
          421,
          'MisdirectedRequest',
          'this listener accepts only the Host localhost, 127.0.0.1 or [::1]',
        )
      for (const host of ['localhost', 'localhost:8080', '127.0.0.1', '[::1]:80'])
        assert.equal((await plain(`${base}/version`, { headers: { host } })).code, 200, host)
      assert.equal((await wire(`${base}/version`, { headers: { host: 'plane.example' } })).code, 200)
    })

    test('no response has CORS headers (D1)', async () => {
      const reply = await openWire(server, 'http')(teams, { headers: { origin: 'https://evil.example' } })
      assert.equal(reply.headers['access-control-allow-origin'], undefined)
    })
  })

  test('errors are YAML if the client accepts YAML (D6)', async () => {
    const reply = await wire(`${teams}/none`, { headers: { accept: 'application/yaml' } })
    assert.equal(reply.headers['content-type'], 'application/yaml')
    assert.match(reply.text, /^kind: Status\napiVersion: v1\nmetadata: \{\}\nstatus: Failure\n/)
  })
})

test('a write above the inflight limit gets 429 with Retry-After; reads still work (wire §1.16)', {
  timeout: 120_000,
}, async () => {
  const server = await startServer({ storage: 'memory', args: ['--limits-writes', '1'] })
  try {
    const wire = openWire(server)
    const slow = await openBare(server.http)
    const { host } = new URL(server.http)
    slow.socket.write(
      `POST ${teams} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${server.adminKey}\r\nContent-Type: application/json\r\nContent-Length: 30\r\n\r\n{"metadata":`,
    )
    const inflight = async () =>
      /apiserver_current_inflight_requests\{request_kind="mutating"\} (\d+)/.exec((await wire('/metrics')).text)?.[1]
    await eventually('one write is under way', async () => (await inflight()) === '1')
    const reply = await wire(teams, { method: 'POST', headers: json, body: '{"metadata":{"name":"b"}}' })
    isStatus(reply, 429, 'TooManyRequests', 'Too many requests, please try again later.', { retryAfterSeconds: 1 })
    assert.equal(reply.headers['retry-after'], '1')
    assert.equal((await wire(teams)).code, 200)
    slow.socket.write('{"name":"slow"}}  ')
    assert.match(await slow.until('"uid"'), /^HTTP\/1\.1 201 /)
    slow.socket.destroy()
    assert.equal((await wire(teams, { method: 'POST', headers: json, body: '{"metadata":{"name":"b"}}' })).code, 201)
  } finally {
    await server.stop()
  }
})
