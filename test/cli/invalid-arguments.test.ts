// Invalid commands, flags, names and locations: each error suggests the right form, before anything is done.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'

const { home } = await signedIn()

test('an unknown command suggests the intended one: swapped words, a kind alone, or kubectl', async () => {
  for (const [typed, wanted] of [
    ['secret get db', 'platform get secret'],
    ['accesskey create ci', 'platform create accesskey'],
    ['secrets', 'platform list secrets'],
    ['accesskeys', 'platform list accesskeys'],
    ['teams', 'platform list teams'],
    ['apply -f team.yaml', 'platform kubectl apply'],
    ['describe team web', 'platform kubectl describe'],
    ['edit team web', 'platform kubectl edit'],
    ['exec web -- env', undefined],
    ['secret list', 'platform list secrets'],
    ['secrets ls', 'platform list secrets'],
    ['ls secrets', 'platform list secrets'],
    ['secrets get db', 'platform get secret'],
    ['rm secret db', 'platform delete secret'],
    ['team remove web', 'platform delete team'],
    ['show team web', 'platform get team'],
    ['add secret db', 'platform set secret'],
    ['new accesskey', 'platform create accesskey'],
    ['signin', 'platform login'],
    ['constructor secret', undefined],
  ] as const)
    assert.equal(
      (await home.fails(2, typed)).split('\n')[0],
      `platform: unknown command "${typed.replace(/ -.*/, '')}"${wanted ? `; did you mean ${wanted}?` : ''}`,
    )
})

test('an unsupported verb of a kind suggests supported ones: secrets are set, tokens are not stored', async () => {
  for (const typed of ['create secret db', 'create secret db a=b', 'create secrets', 'create sharedsecret db'])
    assert.match(await home.fails(2, typed), /: to create a secret, set a key: platform set secret NAME KEY\n/, typed)
  for (const typed of ['get token', 'list tokens', 'delete token x'])
    assert.match(
      await home.fails(2, typed),
      /directclusterendpointtokens are not stored, so there is nothing to (get|list|delete): platform create token creates one/,
    )
  assert.match(await home.fails(2, 'delete namespace x --yes'), /namespaces do not support delete/)
})

test('unknown words suggest known ones, and values are not repeated', async () => {
  for (const [typed, wanted] of [
    ['get secret db password', 'expected one secret; separate the key with a dot: platform get secret db.KEY'],
    [
      'set secret db.password=canary-told',
      'the secret and its key are two arguments: platform set secret NAME KEY=VALUE',
    ],
    ['set secret canary-x=canary-told', 'the secret and its key are two arguments: platform set secret NAME KEY=VALUE'],
    ['import secret TOKEN=canary-told .env', 'pass the file with --file: platform import secret NAME --file FILE'],
    ['import secret app .env', 'pass the file with --file: platform import secret app --file FILE'],
    [
      'create project shop',
      'a project exists as soon as it contains an object: platform set secret NAME KEY --project PROJECT',
    ],
  ] as const)
    assert.equal(await home.fails(2, typed), `platform: ${wanted}\n`, typed)
})

test('a missing secret suggests the intended one: by its name, or by its location', async () => {
  await home.ok('set secret payments a=-', { stdin: 'canary-here' })
  await home.ok('set secret elsewhere a=- -n stage', { stdin: 'canary-stage' })
  await home.ok('set secret of-shop a=- --project shop', { stdin: 'canary-shop' })
  const not = (name: string, place = 'default', kind = 'sharedsecret') =>
    `platform: ${kind}s.management.platform.sh "${name}" not found in namespace ${place}`
  for (const [typed, wanted] of [
    ['get secret paymenst', `${not('paymenst')}; did you mean payments?`],
    ['get secret paymenst.a', `${not('paymenst.a')}; did you mean payments.a?`],
    ['run -s paymenst.a=A -- true', `${not('paymenst.a')}; did you mean payments.a?`],
    ['export secret paymenst', `${not('paymenst')}; did you mean payments?`],
    ['get secret elsewhere', `${not('elsewhere')}; found in another namespace: -n stage`],
    ['get secret elsewhere.a', `${not('elsewhere.a')}; found in another namespace: -n stage`],
    ['get secret of-shop', `${not('of-shop')}; found in a project: --project shop`],
    [
      'get secret payments --project shop',
      `${not('payments', 'p-shop', 'projectsecret')}; a shared secret of that name is in namespace default`,
    ],
    ['get secret payments.', `${not('payments.')}; did you mean payments?`],
    ['get secret wholly-other', not('wholly-other')],
    ['get secret payments.x --key a', `${not('payments.x')}; did you mean payments?`],
    ['get secret payment --key a', `${not('payment')}; did you mean payments?`],
  ] as const)
    assert.equal(await home.fails(3, typed), `${wanted}\n`, typed)
  const env = { PLATFORM_ACCESS_KEY: (await home.ok('create accesskey stranger --for-user eve -o connection')).trim() }
  assert.doesNotMatch(
    await home.fails(5, 'get secret paymenst', { env }),
    /payments/,
    'who may not see it is not led to it',
  )
  for (const name of ['payments', 'nothing'])
    assert.match(
      await home.fails(5, `get secret ${name}.a`, { env }),
      new RegExp(`^platform: sharedsecrets\\.\\S+ "${name}" is forbidden: `),
      'what may not be read is named as the secret, not as its key, whether it is there or not (D49)',
    )
})

test('an unknown verb is sent unchanged with a warning, because roles may contain any verb', async () => {
  const warned = (verb: string, meant: string) =>
    `platform: warning: "${verb}" is not a verb of this API, although a role may contain it; did you mean ${meant}?\n`
  for (const command of ['can-i', 'why', 'who-can']) {
    assert.ok((await home.run(`${command} delet teams`)).stderr.startsWith(warned('delet', 'delete')), command)
    assert.doesNotMatch((await home.run(`${command} delete teams`)).stderr, /warning/)
  }
  assert.doesNotMatch((await home.run('can-i escalate clusterroles')).stderr, /warning/)
  assert.doesNotMatch((await home.run('can-i post /metrics')).stderr, /warning/)
  assert.doesNotMatch((await home.run(['can-i', '*', 'teams'])).stderr, /warning/)
  assert.equal(
    (await home.run('can-i frobnicate team')).stderr.split('\n')[0],
    'platform: warning: "frobnicate" is not a verb of this API, although a role may contain it',
  )
})

test('an incomplete command and a mistyped flag suggest the right form, without follow-up errors', async () => {
  for (const [typed, wanted] of [
    ['create acceskey x', 'unknown command "create acceskey"; did you mean platform create accesskey?'],
    ['create acceskey x --ttl 7d', 'unknown command "create acceskey"; did you mean platform create accesskey?'],
    ['create teams x', 'unknown command "create teams"; did you mean platform create team?'],
    ['list teams --contxt t', 'unknown flag --contxt; did you mean --context?'],
    ['whoami --hlp', 'unknown flag --hlp; did you mean --help?'],
  ] as const)
    assert.equal(
      (await home.fails(2, typed)).split(/\nplatform: see platform .* --help/)[0]?.trim(),
      `platform: ${wanted}`,
    )
})

test('the singular of a list means the list: the same table', async () => {
  for (const [one, all] of [
    ['accesskey', 'accesskeys'],
    ['secret', 'secrets'],
  ])
    assert.equal((await home.ok(`list ${one}`)).split('\n')[0], (await home.ok(`list ${all}`)).split('\n')[0])
  assert.match(await home.ok('list accesskey'), /^NAME +DISPLAY-NAME +OWNER +LAST-USE /)
})

test('list with a name suggests get', async () => {
  assert.equal(
    await home.fails(2, 'list teams web'),
    'platform: list takes only a kind: platform get teams NAME shows one\n',
  )
})

test('an invalid selector is a usage error that names the flag', async () => {
  for (const wrong of ['a=b,', '=', 'a in b'])
    assert.match(
      await home.fails(2, ['list', 'teams', '-l', wrong]),
      /^platform: --selector: ".*" is not a valid selector: /,
    )
})

test('--project and -n are different locations, and are rejected together', async () => {
  for (const args of [
    'get secret db',
    'set secret db a=b',
    'run -s db',
    'list secrets',
    'delete secret db',
    'history secret db',
  ])
    assert.match(
      await home.fails(2, [
        ...args.split(' '),
        '--project',
        'shop',
        '-n',
        'other',
        ...(args.startsWith('run') ? ['--', 'true'] : []),
      ]),
      /: --project shop means namespace p-shop, but -n is other: remove one of them\n/,
      args,
    )
  const same = await home.run('list secrets --project shop -n p-shop')
  assert.equal(same.code, 0)
})

test('a duration needs a unit, and must be positive', async () => {
  for (const args of ['create accesskey x --ttl 7', 'create token --ttl 7', 'rotate accesskey admin --overlap 7'])
    assert.match(await home.fails(2, args), /: "7" must have a unit: use 7s, 7m, 7h, 7d or 7w/, args)
  assert.match(await home.fails(2, 'list secrets --unused 90'), /use 90s, 90m, 90h, 90d or 90w/)
  for (const args of ['create accesskey x --ttl 0s', 'create accesskey x --ttl 0', 'create token --ttl 0h'])
    assert.match(await home.fails(2, args), /--ttl: "0[sh]?" must be greater than zero; without --ttl/, args)
  assert.match(
    await home.fails(2, 'rotate accesskey admin --overlap 0s'),
    /invalidate its old key immediately\? .*--yes/,
  )
  await home.fails(3, 'get accesskey x')
})

test('an error about a duration names the flag and the longest duration', async () => {
  for (const [typed, wanted] of [
    ['create token --ttl 2d', '--ttl "2d": Invalid value: 172800: must be at most 86400 seconds (24h)'],
    [
      'rotate accesskey admin --overlap 90d',
      '--overlap "90d": Invalid value: 7776000: must be a whole number from 0 to 2592000 seconds (30d)',
    ],
  ] as const)
    assert.equal(await home.fails(1, typed), `platform: ${wanted}\n`)
})

test('a context or key with a similar name gets one suggestion', async () => {
  assert.equal(
    await home.fails(2, 'context use 127.0.0.2'),
    'platform: unknown context "127.0.0.2"; did you mean 127.0.0.1?\n',
  )
  await home.ok('set secret sentence password=-', { stdin: 'canary-sentence' })
  assert.equal(
    await home.fails(3, 'get secret sentence.pasword'),
    'platform: sharedsecret "sentence" has no key "pasword"; did you mean password?\n',
  )
})

test('why about a user does not mention keys', async () => {
  const { stdout } = await home.run('why get teams --user bob')
  assert.match(stdout, /acts as bob/)
  assert.doesNotMatch(stdout, /scope/)
  assert.match((await home.run('why get teams')).stdout, /scope: the key has no scope/)
})

test('an empty flag is rejected, because a script may have left a variable empty', async () => {
  for (const flag of ['--ttl', '--for-team', '--for-user', '--scope-project', '--context'])
    assert.match(await home.fails(2, ['create', 'accesskey', 'x', flag, '']), new RegExp(`${flag} is empty`))
  assert.match(await home.fails(2, ['list', 'secrets', '-n', '']), /--namespace is empty/)
  await home.ok(['create', 'team', 'plain', '--display-name', ''])
  await home.fails(3, 'get accesskey x')
})

test('invalid names are rejected before any request', async () => {
  const label = /--namespace: "Bad name" must/
  for (const args of [
    ['context', 'use', '127.0.0.1', '-n', 'Bad name'],
    ['get', 'secret', 'x', '-n', 'Bad name'],
    ['login', 'https://127.0.0.1:1', '-n', 'Bad name'],
  ])
    assert.match(await home.fails(2, args), label)
  assert.match(await home.fails(2, ['get', 'secret', 'x', '--project', 'Bad name']), /--project: "Bad name" must/)
  assert.match(await home.ok('context list'), /127\.0\.0\.1\S+ +admin +default/)
  for (const name of ['BAD NAME', 'A-B', '1A', ''])
    assert.match(
      await home.fails(2, ['run', '--secret', `nothing.there=${name}`, '--', 'true']),
      /--secret nothing\.there=.*: the part after = must be a variable name such as PGPASSWORD: letters, digits and _, not starting with a digit/,
      name,
    )
})

test('the address of a server contains only host and port; the error says what else it has, without passwords', async () => {
  const refused = async (url: string) => home.fails(2, ['login', url, '--context', 'other', '--access-key', '-'])
  assert.match(
    await refused('https://plane.example:8443/kubernetes/management'),
    /contains the path "\/kubernetes\/management": use https:\/\/plane\.example:8443/,
  )
  assert.match(await refused('https://plane.example/?a=b'), /contains a query: use https:\/\/plane\.example/)
  assert.match(await refused('https://plane.example/#c'), /contains a fragment: /)
  const said = await refused('https://ada:canary-password@plane.example')
  assert.match(said, /contains a user or password: use https:\/\/plane\.example/)
  assert.equal(said.includes('canary-password'), false)
  assert.match(await refused('ftp://plane.example'), /must be a URL such as/)
})

test('flags before the command mean the same as behind it', async () => {
  assert.equal(await home.ok('--context 127.0.0.1 whoami -o name'), 'admin\n')
  assert.equal(await home.ok('--context=127.0.0.1 -o name whoami'), 'admin\n')
  assert.match(await home.fails(2, '--context nowhere whoami'), /unknown context "nowhere"/)
  assert.match(await home.fails(2, '--contxt x whoami'), /unknown flag --contxt; did you mean --context\?/)
  assert.match(await home.fails(2, '-n here version'), /unknown flag -n/)
  assert.match(
    await home.fails(2, '--context x kubectl get pods'),
    /--context is not allowed before kubectl, .*; set PLATFORM_CONTEXT to choose the context/,
  )
  assert.match(await home.ok('-h'), /^Usage:/)
  assert.match(await home.fails(2, '--context x'), /no command/)
})
