// Tests of times and numbers for people.

import assert from 'node:assert/strict'
import { after, before, suite, test } from 'node:test'

suite('in another time zone', () => {
  const zone = process.env['TZ']
  let format: typeof import('./format.ts')
  before(async () => {
    process.env['TZ'] = 'Asia/Tokyo'
    format = await import('./format.ts')
  })
  after(() => {
    if (zone === undefined) delete process.env['TZ']
    else process.env['TZ'] = zone
  })

  test('a date is local, and what is not a time stays as it is', () => {
    assert.match(format.dateTime('2026-01-31T20:15:00Z'), /\b1\b.*2026|2026.*\b1\b/)
    assert.match(format.dateTime('2026-01-31T20:15:00Z'), /5:15:00/)
    assert.equal(format.dateTime(Date.parse('2026-01-31T20:15:00Z')), format.dateTime('2026-01-31T20:15:00Z'))
    assert.equal(format.dateTime('soon'), 'soon')
    assert.equal(format.dateTime(undefined), '')
  })

  test('a field shows the local time, and the server gets the same moment', () => {
    assert.equal(format.localField('2026-01-31T20:15:07Z'), '2026-02-01T05:15:07')
    assert.equal(format.fromLocalField('2026-02-01T05:15:07'), '2026-01-31T20:15:07.000Z')
    assert.equal(format.fromLocalField('2026-02-01T05:15'), '2026-01-31T20:15:00.000Z')
    assert.deepEqual([format.localField(''), format.fromLocalField('')], ['', ''])
  })
})
