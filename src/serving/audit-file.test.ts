// The audit log as a file: rotation loses no line, old files are deleted, and a full disk or an external rotation is handled.

import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout } from 'node:timers/promises'
import { type FileOptions, openFileDestination } from './audit-file.ts'
import { openSink } from './audit-sink.ts'

async function open(more: Partial<FileOptions> = {}) {
  const directory = mkdtempSync(join(tmpdir(), 'audit-file-'))
  const file = join(directory, 'audit.log')
  const failures: string[] = []
  const settings = { file, maxBytes: 2000, maxFiles: 0, maxAge: 0, now: Date.now, ...more }
  const destination = await openFileDestination({ ...settings, failed: what => void failures.push(what) })
  const seen = { lost: 0 }
  const sink = openSink({
    destination,
    queueBytes: 1 << 24,
    batchBytes: 500,
    lost: lines => {
      seen.lost += lines
    },
    failed: () => {},
    retryAfter: 5,
    closeWithin: 30_000,
  })
  const parts = () =>
    readdirSync(directory)
      .filter(name => name.startsWith('audit-'))
      .sort()
  const all = () => [...parts(), 'audit.log'].map(name => readFileSync(join(directory, name), 'utf8')).join('')
  return { directory, file, sink, seen, failures, parts, all, end: () => rmSync(directory, { recursive: true }) }
}
const joined = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => `line ${index + from}\n`).join('')

test('rotation under concurrent writes loses no line, keeps the order, and respects the maximum file size', async () => {
  const { sink, directory, parts, all, end } = await open()
  let written = 0
  const writer = async () => {
    for (let round = 0; round < 100; round++) {
      for (let burst = 0; burst < 5; burst++) sink.write(`line ${written++}`)
      await setTimeout(0)
    }
  }
  await Promise.all([writer(), writer(), writer(), writer()])
  await sink.close()
  assert.equal(all(), joined(2000))
  assert.ok(parts().length >= 8, `${parts().length} rotations`)
  for (const name of readdirSync(directory)) {
    const { size, mode } = statSync(join(directory, name))
    assert.ok(size <= 2000, `${name} has ${size} bytes`)
    assert.equal(mode & 0o777, 0o600)
  }
  assert.match(parts()[0] ?? '', /^audit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}\.log$/)
  end()
})

test('only the configured number and age of rotated files is kept, and other files are ignored', async () => {
  let time = Date.parse('2026-01-01T00:00:00Z')
  const { sink, directory, parts, end } = await open({ maxFiles: 3, maxAge: 3600_000, now: () => time })
  writeFileSync(join(directory, 'audit-notes.log'), '')
  writeFileSync(join(directory, 'audit-2020-01-01T00-00-00.000.txt'), '')
  const foreign = 2
  const fill = async () => {
    for (let n = 0; n < 200; n++) sink.write('x'.repeat(99))
    await sink.flush()
  }
  await fill()
  assert.equal(parts().length, 3 + foreign)
  const kept = parts().filter(name => /T.*log$/.test(name))
  assert.equal(kept.length, 3)
  time += 2 * 3600_000
  sink.write('y')
  await sink.flush()
  assert.deepEqual(
    parts().filter(name => kept.includes(name)),
    [],
    'by age',
  )
  assert.ok(parts().length >= foreign && parts().length <= foreign + 1)
  await sink.close()
  end()
})

test('a file that was moved away is created again; a truncated one is kept', async () => {
  const { sink, file, end } = await open({ maxBytes: 1 << 20 })
  sink.write('line 0')
  await sink.flush()
  renameSync(file, `${file}.1`)
  sink.write('line 1')
  await sink.flush()
  assert.equal(readFileSync(`${file}.1`, 'utf8'), 'line 0\n')
  assert.equal(readFileSync(file, 'utf8'), 'line 1\n')
  writeFileSync(file, '')
  sink.write('line 2')
  await sink.flush()
  assert.equal(readFileSync(file, 'utf8'), 'line 2\n')
  rmSync(file)
  sink.write('line 3')
  await sink.close()
  assert.equal(readFileSync(file, 'utf8'), 'line 3\n')
  end()
})

test('an existing log is continued, and made private', async () => {
  const { directory, end, sink } = await open()
  await sink.close()
  const file = join(directory, 'audit.log')
  writeFileSync(file, 'before\n', { mode: 0o644 })
  const destination = await openFileDestination({
    file,
    maxBytes: 100,
    maxFiles: 0,
    maxAge: 0,
    now: Date.now,
    failed: () => {},
  })
  assert.equal(await destination.put(Buffer.from('after\n'), 0), 6)
  await destination.close()
  assert.equal(readFileSync(file, 'utf8'), 'before\nafter\n')
  assert.equal(statSync(file).mode & 0o777, 0o600)
  end()
})

test('a missing directory fails the start', async () => {
  const options = { maxBytes: 1, maxFiles: 0, maxAge: 0, now: Date.now, failed: () => {} }
  await assert.rejects(openFileDestination({ file: '/nonexistent/audit.log', ...options }), /ENOENT/)
})

test('a log that cannot be written makes the sink fail, and it recovers without losing a line', async () => {
  const { sink, directory, file, seen, all, end } = await open({ maxBytes: 1 << 20 })
  sink.write('line 0')
  await sink.flush()
  // Root ignores permissions, so a directory in place of the file makes the write fail.
  renameSync(file, join(directory, 'audit-0.log'))
  mkdirSync(file)
  sink.write('line 1')
  while (!sink.failure) await setTimeout(1)
  assert.match(sink.failure, /EISDIR/)
  for (let n = 2; n < 100; n++) sink.write(`line ${n}`)
  await setTimeout(20)
  assert.ok(sink.failure)
  rmSync(file, { recursive: true })
  await sink.flush()
  assert.equal(sink.failure, undefined)
  assert.equal(all(), joined(100))
  assert.equal(seen.lost, 0)
  await sink.close()
  end()
})

test('a full disk truncates a line; after the file is moved the whole line is in the new one', () => {
  const directory = mkdtempSync(join(tmpdir(), 'audit-full-'))
  const file = join(directory, 'audit.log')
  const program = `
    import { renameSync } from 'node:fs'
    import { setTimeout } from 'node:timers/promises'
    import { openFileDestination } from '${import.meta.dirname}/audit-file.ts'
    import { openSink } from '${import.meta.dirname}/audit-sink.ts'
    process.on('SIGXFSZ', () => {})
    const destination = await openFileDestination({ file: '${file}', maxBytes: 1e9, maxFiles: 0, maxAge: 0, now: Date.now, failed() {} })
    const sink = openSink({ destination, queueBytes: 1e8, batchBytes: 1000, lost() {}, failed() {}, retryAfter: 5 })
    for (let n = 0; n < 1000; n++) sink.write('line ' + n)
    while (!sink.failure) await setTimeout(1)
    console.log(sink.failure)
    renameSync('${file}', '${file}.1')
    await sink.flush()
    console.log(String(sink.failure))
    await sink.close()`
  const child = spawnSync('prlimit', ['--fsize=8192', process.execPath, '--input-type=module', '-e', program])
  assert.match(child.stdout.toString(), /EFBIG.*\nundefined/, child.stderr.toString())
  const [old, fresh] = [`${file}.1`, file].map(name => readFileSync(name, 'utf8')) as [string, string]
  assert.equal(old.length, 8192)
  const whole = old.slice(0, old.lastIndexOf('\n') + 1)
  assert.equal(whole + fresh, joined(1000))
  assert.ok(existsSync(file))
  rmSync(directory, { recursive: true })
})
