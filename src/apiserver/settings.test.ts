// Settings are validated together, and plain HTTP listens on loopback addresses only (D1).

import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { longestTokenTTL } from '../kinds/direct-cluster-endpoint-token.ts'
import { isLoopback } from '../serving/address.ts'
import { readSettings, SettingsError } from './settings.ts'

test('a name that starts like a loopback address is not loopback', () => {
  for (const address of ['localhost:1', '127.0.0.1:8080', '127.9.8.7:0', '[::1]:80'])
    assert.equal(isLoopback(address), true, address)
  for (const address of [
    '127.example.org:80',
    'localhost.example.org:80',
    '127.0.0.1.nip.io:80',
    '0.0.0.0:80',
    '[::]:80',
  ])
    assert.equal(isLoopback(address), false, address)
})

test('plain HTTP on any other address requires --insecure-http', async () => {
  for (const http of ['127.example.org:80', 'localhosting:80', '0.0.0.0:80']) {
    await assert.rejects(readSettings(['--http', http], {}), SettingsError, http)
    assert.equal((await readSettings(['--http', http, '--insecure-http'], {})).http, http)
  }
})

test('unknown flags, missing values and extra arguments are reported together, each with a suggestion', async () => {
  const problems = async (...args: string[]): Promise<readonly string[]> => {
    try {
      await readSettings(args, {})
    } catch (error) {
      return (error as SettingsError).problems
    }
    return []
  }
  const [data, https, http, argument, help] = await problems('--dta', 'x', '--htps=1', '--http')
  assert.match(data ?? '', /^unknown flag --dta; did you mean --data\?$/)
  assert.match(https ?? '', /^unknown flag --htps; did you mean --https\?$/)
  assert.match(http ?? '', /^--http .*: --http VALUE$/)
  assert.equal(argument, 'unexpected argument of 1 characters; only flags are allowed')
  assert.equal(help, '--help lists the flags')
  assert.deepEqual(await problems('--insecure-http=maybe'), [
    '--insecure-http: "maybe" must be true or false',
    '--help lists the flags',
  ])
  const settings = await readSettings(['--audit-log', '-', '--insecure-http', '--data=a', '--data', 'b'], {})
  assert.deepEqual([settings['audit.log'], settings.insecureHttp, settings.data], ['-', true, 'b'])
})

test('an empty value is an error for a flag, the default for a variable, and an error in a file unless the default is empty', async () => {
  for (const [flag, value] of [
    ['--data', ''],
    ['--data=', undefined],
    ['--master-key', ''],
    ['--tls-san', ''],
  ])
    await assert.rejects(readSettings([flag as string, ...(value === undefined ? [] : [value])], {}), {
      message: `${flag?.replace('=', '')} requires a value\n--help lists the flags`,
    })
  assert.equal((await readSettings([], { PLATFORM_DATA: '', PLATFORM_CONFIG: '' })).data, 'data')
  const directory = mkdtempSync(join(tmpdir(), 'platform-settings-'))
  const file = join(directory, 'config.yaml')
  const inFile = (text: string) => {
    writeFileSync(file, `apiVersion: config.platform.sh/v1\nkind: ServerConfig\n${text}`)
    return readSettings(['--config', file], {})
  }
  await assert.rejects(inFile('data: ""\n'), { message: `${file}: data requires a value` })
  assert.equal((await inFile('masterKey: ""\n')).masterKey, '')
  rmSync(directory, { recursive: true })
})

test('messages do not repeat long values, which may be secrets', async () => {
  const long = 'x'.repeat(300)
  for (const args of [['--https', long], ['--shutdown-delay', long], ['--storage', long], [`--insecure-http=${long}`]])
    await assert.rejects(
      readSettings(args, {}),
      (error: Error) => error instanceof SettingsError && !/x{65}/.test(error.message),
    )
})

test('no setting allows tokens to outlive their revocations (D31)', async () => {
  const ask = async (ttl: number) => (await readSettings(['--token-max-ttl', String(ttl)], {}))['token.maxTTL']
  assert.equal(await ask(longestTokenTTL), longestTokenTTL)
  await assert.rejects(ask(longestTokenTTL + 1), SettingsError)
})
