// `platform support-bundle`: what it collects from a server or a data directory, and that no secret and no name is in it.

import assert from 'node:assert/strict'
import { appendFileSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { openCanaries } from '../support/canary.ts'
import { type CliHome, openHome } from '../support/cli-home.ts'
import { closeAll } from '../support/close-all.ts'
import { type Server, startServer } from '../support/server.ts'
import { eventually } from '../support/wire.ts'

const api = '/apis/management.platform.sh/v1'
const base64 = (text: string) => Buffer.from(text).toString('base64')

/** The files of an archive, read by the tar of this machine. */
async function unpack(home: CliHome, file: string): Promise<{ readonly [name: string]: string }> {
  const directory = `${file}.d`
  mkdirSync(directory)
  const { code, stderr } = await home.by(['tar', '-xzf', file, '-C', directory])
  assert.equal(code, 0, stderr)
  const { stdout } = await home.by(['tar', '-tzf', file])
  return Object.fromEntries(
    stdout
      .trim()
      .split('\n')
      .map(name => [name.replace('platform-support/', ''), readFileSync(join(directory, name), 'utf8')]),
  )
}

describe('platform support-bundle', { timeout: 180_000 }, () => {
  const canaries = openCanaries()
  let server: Server
  let home: CliHome
  const made: string[] = []
  /** Everything that must not be in a bundle. */
  const plant = (text: string) => {
    canaries.note(text)
    made.push(text)
    return text
  }

  before(async () => {
    server = await startServer({ args: ['--tls-san', plant('canary-san.example'), '--log-level', 'debug'] })
    home = await openHome({ mayHold: /keys\/|config\.yaml|\.log$/ })
    await home.signIn(server)
    for (const name of ['admin.key', 'ca.key', 'master.key', 'audit.salt'])
      plant(readFileSync(join(server.directory, name), 'latin1').trim())
    const must = async (method: string, path: string, body: object) => {
      const answer = await server.request(method, path, { body })
      assert.ok(answer.status < 300, answer.text)
      return answer.body
    }
    await must('POST', `${api}/namespaces/default/sharedsecrets`, {
      metadata: {
        name: plant('canary-shared'),
        labels: { [plant('canary-label')]: plant('canary-label-value') },
        annotations: { note: plant('canary-annotation') },
      },
      spec: {
        displayName: plant('canary-display'),
        data: { [plant('canary-data-key')]: base64(plant('canary-data')) },
      },
    })
    await must('POST', `${api}/teams`, {
      metadata: { name: plant('canary-team') },
      spec: { users: [plant('canary-user')], clusterRoles: [{ name: plant('canary-missing-role') }] },
    })
    const key = await must('POST', `${api}/ownedaccesskeys`, {
      metadata: { name: plant('canary-access-key') },
      spec: { user: plant('canary-owner'), displayName: plant('canary-key-display') },
    })
    plant(key.spec.key)
    const token = await must('POST', `${api}/directclusterendpointtokens`, { spec: {} })
    plant(token.status.token)
    await must('POST', `${api}/clusters`, {
      metadata: { name: plant('canary-cluster') },
      spec: {
        displayName: plant('canary-cluster-display'),
        gateway: { url: `https://${plant('canary-gateway.example')}` },
      },
    })
    await server.request('GET', `${api}/teams/${plant('canary-not-found')}?fieldSelector=${plant('canary-query')}`)
    await server.request('DELETE', `${api}/teams/canary-not-found`)
    await server.request('DELETE', `${api}/${plant('canaryresource')}/x`, { key: plant('canary-wrong-credential') })
    await eventually('the condition of the team', async () =>
      /RolesMissing/.test((await server.request('GET', `${api}/teams/canary-team`)).text),
    )
  })
  after(() =>
    closeAll(
      () => home.close(),
      () => server.stop(),
    ),
  )

  /** Words of a log that must go, beside the fields that stay. */
  function logFile(): string {
    const file = join(home.directory, 'server.log')
    const lines = [
      ...server.output().split('\n'),
      JSON.stringify({
        level: 50,
        time: 1,
        audit: '4d32518a-1e9c-4255-9eaf-8be7afe27244',
        code: 500,
        user: plant('canary-log-user'),
        path: `/kubernetes/management${api}/teams/${plant('canary-log-path')}`,
        [plant('canary-field')]: plant('canary-field-value'),
        msg: `storage failed: cannot write ${plant('/srv/canary-log-file')}: no space left`,
        err: {
          type: 'TypeError',
          message: plant('canary-error-message'),
          stack: `TypeError: canary-error-message\n    at handle (file:///srv/canary-directory/src/http/server.ts:12:3)\n    at ${plant('canaryFunction1')} (node:internal/x:1:2)`,
        },
      }),
      `plain text with ${plant('canary-plain-text')}`,
    ]
    plant('canary-directory')
    writeFileSync(file, lines.join('\n'))
    return file
  }

  const check = (file: string, files: { readonly [name: string]: string }) => {
    assert.equal(canaries.in(gunzipSync(readFileSync(file))), undefined)
    for (const [name, text] of Object.entries(files)) {
      assert.equal(canaries.in(text), undefined, name)
      assert.doesNotMatch(text, /canary/i, name)
    }
  }

  test('from a server: what it says, what it contains, and that nothing secret is in it', async () => {
    const file = join(home.directory, 'bundle.tar.gz')
    const { code, stdout, stderr } = await home.exec(['support-bundle', '--output', file, '--log', logFile()], {
      env: { CANARY_VARIABLE: plant('canary-environment'), OTEL_EXPORTER_OTLP_HEADERS: `a=${plant('canary-otel')}` },
    })
    assert.equal(code, 0, stderr)
    assert.equal(stdout, `${file}\n`)
    assert.equal(statSync(file).mode & 0o777, 0o600)
    const files = await unpack(home, file)
    check(file, files)
    for (const name of Object.keys(files)) if (name !== 'README.txt') assert.ok(stderr.includes(`\n${name} `), name)
    assert.deepEqual(Object.keys(files).toSorted(), [
      'README.txt',
      'log.jsonl',
      'machine.json',
      'server/audit-errors.json',
      'server/conditions.json',
      'server/discovery.json',
      'server/livez.txt',
      'server/metrics.txt',
      'server/objects.json',
      'server/readyz.txt',
      'server/version.json',
    ])
    const read = (name: string) => JSON.parse(files[name] ?? '')
    assert.match(read('server/version.json').gitVersion, /platform-/)
    assert.match(
      files['server/readyz.txt'] ?? '',
      /^\[\+\]ping ok\n\[\+\]storage ok\n\[\+\]shutdown ok\nreadyz check passed/,
    )
    assert.match(files['server/metrics.txt'] ?? '', /^apiserver_request_total\{.*code="404".*\} \d+$/m)
    assert.match(
      files['server/metrics.txt'] ?? '',
      /^apiserver_storage_objects\{resource="teams.management.platform.sh"\} 1$/m,
    )
    const counts = read('server/objects.json') as { kind: string; count: number }[]
    assert.equal(counts.find(({ kind }) => kind === 'SharedSecret')?.count, 1)
    const conditions = read('server/conditions.json') as { kind: string; reason: string; name: string }[]
    const missing = conditions.find(({ reason }) => reason === 'RolesMissing')
    assert.deepEqual([missing?.kind, /^name-[0-9a-f]{12}$/.test(missing?.name ?? '')], ['Team', true])
    const errors = read('server/audit-errors.json') as { code: number; verb: string; resource: string; count: number }[]
    assert.ok(errors.some(({ code, verb, resource }) => code === 404 && verb === 'delete' && resource === 'teams'))
    const lines = (files['log.jsonl'] ?? '')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
    const failure = lines.find(({ level }) => level === 50)
    assert.deepEqual(
      { ...failure, user: '' },
      {
        level: 50,
        time: 1,
        code: 500,
        audit: '4d32518a-1e9c-4255-9eaf-8be7afe27244',
        user: '',
        path: `/kubernetes/management${api}/teams/*`,
        msg: 'storage failed: cannot write * no space left',
        err: { type: 'TypeError', stack: ['src/http/server.ts:12:3', 'node:internal/x:1:2'] },
      },
    )
    assert.match(JSON.stringify(lines.at(-1)), /"otherLines":\d+/)
    // Reading the secret for the bundle is not a read of its data (D35).
    const last = await server.request('GET', `${api}/namespaces/default/sharedsecrets/canary-shared/lastread`)
    assert.deepEqual([last.status, last.body.status], [200, {}])
  })

  test('--output - writes the archive to standard output, for containers without a shell', async () => {
    const write = 'support-bundle --data "$0" --output - > piped.tar.gz'
    const { code, stdout, stderr } = await home.by(['sh', '-c', `platform ${write}`, server.directory])
    assert.deepEqual([code, stdout], [0, ''], stderr)
    const file = join(home.directory, 'piped.tar.gz')
    const files = await unpack(home, file)
    check(file, files)
    assert.ok(files['local/files.json'])
    assert.ok(!existsSync(join(home.directory, '-')))
  })

  test('--names keeps names of objects, and still no secret', async () => {
    const file = join(home.directory, 'named.tar.gz')
    await home.ok(['support-bundle', '--output', file, '--names'])
    const files = await unpack(home, file)
    assert.match(files['server/conditions.json'] ?? '', /"name": "canary-team"/)
    const secrets = openCanaries()
    for (const text of [server.adminKey, 'canary-data', 'canary-wrong-credential', 'canary-annotation'])
      secrets.note(text)
    for (const [name, text] of Object.entries(files)) assert.equal(secrets.in(text), undefined, name)
  })

  test('a user without permissions gets the reasons in place of the parts', async () => {
    const file = join(home.directory, 'small.tar.gz')
    const made = await server.request('POST', `${api}/ownedaccesskeys`, { body: { spec: { user: 'nobody' } } })
    const env = {
      PLATFORM_ACCESS_KEY: made.body.spec.key,
      PLATFORM_SERVER: server.https,
      PLATFORM_CA_FILE: join(server.directory, 'ca.crt'),
    }
    const { code, stderr } = await home.run(['support-bundle', '--output', file], { env })
    assert.equal(code, 0, stderr)
    assert.match(stderr, /server\/metrics.txt +metrics without names \(not readable: 403\)/)
    const files = await unpack(home, file)
    assert.deepEqual(JSON.parse(files['server/metrics.txt'] ?? ''), { code: 403, reason: 'Forbidden' })
  })

  test('an existing file, an unknown log and an unreachable server have their exit codes', async () => {
    const file = join(home.directory, 'existing.tar.gz')
    writeFileSync(file, '')
    assert.match(await home.fails(2, ['support-bundle', '--output', file]), /already exists: choose another file/)
    const free = join(home.directory, 'free.tar.gz')
    assert.match(
      await home.fails(2, ['support-bundle', '--output', free, '--log', '/nonexistent']),
      /cannot read \/nonexistent/,
    )
    const env = { PLATFORM_ACCESS_KEY: 'plat_x', PLATFORM_SERVER: 'http://127.0.0.1:1' }
    await home.fails(7, ['support-bundle', '--output', free], { env })
    await home.fails(2, ['support-bundle', '--output', free, '--data', '/nonexistent'])
  })

  test('--data: a damaged store is a part of the bundle, not an error', async () => {
    const directory = join(home.directory, 'damaged')
    mkdirSync(directory)
    writeFileSync(join(directory, 'platform.db'), plant('canary-not-a-database').repeat(100))
    const file = join(home.directory, 'damaged.tar.gz')
    await home.ok(['support-bundle', '--output', file, '--data', directory])
    const files = await unpack(home, file)
    check(file, files)
    for (const name of ['store', 'objects', 'conditions'])
      assert.match(files[`local/${name}.json`] ?? '', /"problem": ".*not a database/, name)
  })

  test('--data: from the directory of a server that does not run, with its settings', async () => {
    const file = join(home.directory, 'local.tar.gz')
    const config = join(home.directory, 'config.yaml')
    const set = (key: string, value: string) => `${key}: ${plant(value)}\n`
    writeFileSync(
      config,
      [
        'apiVersion: config.platform.sh/v1\nkind: ServerConfig\nlimits: {reads: 77}\nlogLevel: warn\nhttps: 0.0.0.0:9443\n',
        set('masterKey', 'env:CANARY_MASTER_KEY_NAME'),
        set('tlsCert', '/srv/canary-tls.crt') +
          set('tlsKey', '/srv/canary-tls.key') +
          set('tlsCa', '/srv/canary-tls-ca'),
        `tlsSan: [${plant('canary-other-san.example')}]\nauth: {config: ${plant('/srv/canary-auth.yaml')}, adminGroups: [${plant('canary-admins')}]}\n`,
        `${set('baseUrl', 'https://canary-base.example')}replica: {url: ${plant('https://canary-replica.example')}}\n`,
        `gateway: {config: ${plant('/srv/canary-gateway.yaml')}}\notlp: {endpoint: ${plant('https://canary-otlp.example')}}\n`,
        `trustedProxy: [203.0.113.77]\naudit: {policy: ${plant('/srv/canary-policy.yaml')}}\n`,
        `etcd: {ca: ${plant('/srv/canary-etcd-ca')}, cert: ${plant('/srv/canary-etcd-cert')}, key: ${plant('/srv/canary-etcd-key')}, prefix: ${plant('/canary-prefix')}}\n`,
      ].join(''),
    )
    plant('203.0.113.77')
    await server.restart(async () => {
      appendFileSync(
        join(server.directory, 'audit.log'),
        `${JSON.stringify({ stage: 'ResponseComplete', verb: plant('canary-verb'), objectRef: { resource: plant('canary-resource') }, responseStatus: { code: 418, reason: plant('canary-reason') } })}\n`,
      )
      const { code, stderr } = await home.exec(
        ['support-bundle', '--output', file, '--data', server.directory, '--config', config, '--log', logFile()],
        { env: { CANARY_MASTER_KEY_NAME: plant('canary-master-key-value') } },
      )
      assert.equal(code, 0, stderr)
    })
    const files = await unpack(home, file)
    check(file, files)
    const read = (name: string) => JSON.parse(files[name] ?? '')
    const settings = read('local/settings.json')
    assert.deepEqual(
      [settings['limits.reads'], settings.logLevel, settings.https, settings.http, settings.tlsCert, settings.storage],
      [77, 'warn', 'another address:9443', '127.0.0.1:8080 (default)', '(set)', 'sqlite (default)'],
    )
    assert.equal(settings.tlsSan, '1 values')
    assert.equal(read('local/store.json').format, 2)
    const counts = read('local/objects.json') as { kind: string; count: number }[]
    assert.equal(counts.find(({ kind }) => kind === 'Team')?.count, 1)
    assert.match(files['local/conditions.json'] ?? '', /"reason": "RolesMissing"/)
    assert.match(
      files['local/audit-errors.json'] ?? '',
      /"code": 418,\s+"verb": "other",\s+"resource": "other",\s+"count": 1/,
    )
    assert.ok(read('local/files.json').some(({ name }: { name: string }) => name === 'platform.db'))
    assert.ok(made.length > 45)
  })
})
