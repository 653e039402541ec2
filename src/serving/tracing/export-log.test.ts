// The log about an unreachable collector has at most one line a minute.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openExportLog } from './export-log.ts'

test('one line a minute, also if the reason changes or the collector comes and goes', () => {
  const lines: string[] = []
  let time = 0
  const record = (fields: unknown, text?: string) =>
    void lines.push(
      `${time / 1000} ${text ?? fields}${text && JSON.stringify(fields) !== '{}' ? JSON.stringify(fields) : ''}`,
    )
  const log = openExportLog({ info: record, warn: record } as never, () => time)
  log.worked()
  for (; time < 180_000; time += 5000) {
    log.failed(time % 10_000 ? 'ECONNREFUSED' : '503')
    log.worked()
  }
  assert.deepEqual(lines, [
    '0 sending traces to the collector failed, dropping them: 503',
    '60 sending traces to the collector failed, dropping them: 503{"suppressed":11}',
    '120 sending traces to the collector failed, dropping them: 503{"suppressed":11}',
  ])
  log.worked()
  assert.equal(lines.at(-1), '180 sending traces to the collector works again')
  time += 600_000
  log.worked()
  assert.equal(lines.length, 4)
})
