// Objects by name: those that are there are shown whatever is not, KIND/NAME is a name too, and a watch keeps its columns.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmodSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { signedIn } from '../support/cli-home.ts'
import { eventually } from '../support/wire.ts'

const { home } = await signedIn()
before(async () => {
  for (const name of ['web', 'x1']) await home.ok(`create team ${name} --user ada`)
})

test('of several names existing objects are printed, missing ones are reported, and the exit code is 3', async () => {
  const { code, stdout, stderr } = await home.run('get teams web nope x1 -o name')
  assert.deepEqual([code, stdout], [3, 'team/web\nteam/x1\n'])
  assert.match(stderr, /"nope" not found/)
  const none = await home.run('get teams no nope')
  assert.deepEqual([none.code, none.stdout], [3, ''])
  assert.equal(none.stderr.split('\n').length, 3)
})

test('KIND/NAME names an object, for get and delete, of one kind at a time', async () => {
  assert.equal(await home.ok('get team/web teams/x1 -o name'), 'team/web\nteam/x1\n')
  assert.match(await home.fails(2, 'get team/web secret/app'), /team\/web and secret\/app are of different kinds/)
  assert.match(await home.fails(2, 'get team/web x1'), /"x1" must be KIND\/NAME, like the others/)
  assert.match(await home.fails(2, 'get team/'), /"team\/" must be KIND\/NAME/)
  await home.ok('create team gone')
  assert.equal(await home.ok('delete team/gone --yes'), 'team/gone deleted\n')
  assert.match(await home.fails(2, 'delete team --yes'), /NAME is missing/)
})

test('an empty name or a dot deletes nothing, because a variable may be empty by mistake', async () => {
  for (const words of [
    ['delete', 'team', '', '--yes'],
    ['delete', 'team', 'web', '', '--yes'],
    ['delete', 'accesskey', '', '--yes'],
    ['team', 'add-user', 'web', ''],
  ])
    assert.match(await home.fails(2, words), /^platform: NAME is empty/)
  for (const dots of ['.', '..'])
    assert.match(await home.fails(1, ['delete', 'team', dots, '--yes']), /"\.+" is not a valid name for a team/)
  assert.equal(await home.ok('list teams -o name'), 'team/web\nteam/x1\n')
})

test('a watch of a missing name exits with 3; otherwise its columns stay and deletions are printed', async () => {
  assert.match(await home.fails(3, 'get team nope -w'), /"nope" not found/)
  assert.match(await home.fails(3, 'get team web nope -w -o json'), /"nope" not found/)
  const follow = (...args: string[]) => {
    const child = home.start(['get', ...args])
    let text = ''
    child.stdout?.on('data', chunk => {
      text += chunk
    })
    return {
      until: async (wanted: RegExp) => {
        await eventually('it prints that', async () => wanted.test(text))
        return text
      },
      end: async () => {
        child.kill('SIGINT')
        await once(child, 'exit')
      },
    }
  }
  const table = follow('teams', '-w')
  const names = follow('teams', '-w', '-o', 'name')
  await table.until(/x1/)
  await names.until(/team\/x1\n/)
  await home.ok(['create', 'team', 'g1', '--display-name', 'G one'])
  await home.ok('create team a-name-that-is-longer-than-any-before')
  await home.ok('delete team g1 --yes')
  await names.until(/team\/g1\n(.*\n)*team\/g1 deleted\n/)
  const [header = '', ...rows] = (await table.until(/DELETED.*\n/)).trimEnd().split('\n')
  const starts = [...header.matchAll(/\S+/g)].map(({ index }) => index)
  for (const row of rows.filter(one => !one.includes('longer')))
    for (const start of starts.slice(1))
      assert.match(row.slice(start - 2, start + 1), /^ {2}(\S|$| )/, `${header}\n${row}`)
  const last = header.lastIndexOf('AGE')
  for (const row of rows.filter(one => !one.includes('longer')))
    assert.match(row.slice(last), /^\d+s$/, `${header}\n${row}`)
  assert.match(rows.find(one => one.includes('longer')) ?? '', /before {2,}\S/)
  await table.end()
  await names.end()
})

test('an empty list for a scoped key says that the scope may hide objects', async () => {
  const key = (await home.ok('create accesskey narrow --scope-project shop -o connection')).trim()
  const { code, stderr } = await home.run('list teams', { env: { PLATFORM_ACCESS_KEY: key } })
  assert.equal(code, 0)
  assert.equal(stderr, 'No teams found.\nThe scope of access key "narrow" may hide objects.\n')
  assert.equal((await home.run('list teams -l no=body')).stderr, 'No teams found.\n')
})

test('list accesskeys -o wide has the columns of the default output, and more', async () => {
  const [usual = ''] = (await home.ok('list accesskeys')).split('\n')
  const [wide = ''] = (await home.ok('list accesskeys -o wide')).split('\n')
  assert.ok(wide.replace(/ +/g, ' ').startsWith(usual.replace(/ +/g, ' ')), wide)
  assert.match(wide, /TYPE +AGE$/)
})

test('run reports keys that are not valid variable names, and exits with 127 and 126 like a shell', async () => {
  await home.ok(['set', 'secret', 'tls', 'tls.crt=-'], { stdin: 'canary-crt' })
  await home.ok(['set', 'secret', 'tls', 'user=-'], { stdin: 'canary-user' })
  const { code, stderr } = await home.run('run -s tls -- true')
  assert.equal(code, 0)
  assert.match(
    stderr,
    /warning: not valid variable names, so shells cannot read them: tls\.crt; map them with --secret NAME\.KEY=ENV/,
  )
  assert.doesNotMatch((await home.run('run -s tls.user -- true')).stderr, /names of variables/)
  const renamed = await home.run('run -s tls.tls.crt=CERT -- true')
  assert.doesNotMatch(renamed.stderr, /names of variables/)
  assert.match(await home.fails(127, 'run -s tls.user -- /no/such'), /cannot start \/no\/such: program not found/)
  const file = join(home.directory, 'no-program')
  writeFileSync(file, 'text')
  chmodSync(file, 0o600)
  assert.match(await home.fails(126, ['run', '-s', 'tls.user', '--', file]), /permission denied/)
})
