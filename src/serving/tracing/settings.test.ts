// The settings of tracing, from the flag and the variables of OpenTelemetry.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../host/command.ts'
import { readTracingSettings } from './settings.ts'
import { readTraceparent, writeTraceparent } from './traceparent.ts'

const read = (env: { [name: string]: string }, endpoint = '') =>
  readTracingSettings({ endpoint, env, service: 'platform', version: '1.2.3' })
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }

test('tracing is off without an endpoint, and can be switched off', () => {
  assert.equal(read({}), undefined)
  assert.equal(read({ OTEL_SERVICE_NAME: 'x', OTEL_TRACES_SAMPLER: 'wrong' }), undefined)
  assert.equal(read({ ...endpoint, OTEL_SDK_DISABLED: 'true' }), undefined)
  assert.equal(read({ ...endpoint, OTEL_TRACES_EXPORTER: 'none' }, 'http://other:4318'), undefined)
})

test('the flag comes before the variable for traces, and that before the general one', () => {
  assert.equal(read(endpoint)?.url, 'http://collector:4318/v1/traces')
  const traces = { ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces/in' }
  assert.equal(read(traces)?.url, 'https://traces/in')
  assert.equal(read(traces, 'http://flag:4318/base/')?.url, 'http://flag:4318/base/v1/traces')
})

test('headers, attributes, name and sampler come from the standard variables', () => {
  const settings = read({
    ...endpoint,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20abc, x-tenant = a%2Cb ,',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=prod,service.name=other',
    OTEL_SERVICE_NAME: 'plane',
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.05',
  })
  assert.deepEqual(settings?.headers, { authorization: 'Bearer abc', 'x-tenant': 'a,b' })
  assert.deepEqual(settings?.resource, {
    'service.version': '1.2.3',
    'deployment.environment.name': 'prod',
    'service.name': 'plane',
  })
  assert.deepEqual(settings?.sampling, { ratio: 0.05, isParentBased: true })
  assert.deepEqual(read(endpoint)?.sampling, { ratio: 1, isParentBased: true })
  assert.equal(read(endpoint)?.resource['service.name'], 'platform')
})

test('all problems are reported, and none repeats a secret', () => {
  const env = {
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://user:canary-password@collector',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
    OTEL_EXPORTER_OTLP_HEADERS: 'canary-header%zz=canary-value,b=%0acanary',
    OTEL_TRACES_SAMPLER: 'sometimes',
  }
  assert.throws(
    () => read(env),
    error => {
      assert.ok(error instanceof UsageError)
      assert.equal(error.problems.length, 5, error.message)
      assert.doesNotMatch(error.message, /canary/)
      return true
    },
  )
  for (const argument of ['2', '-1', 'x', '1e9', '1.5'])
    assert.throws(
      () => read({ ...endpoint, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: argument }),
      UsageError,
      argument,
    )
})

test('an invalid traceparent counts as absent', () => {
  const id = '0af7651916cd43dd8448eb211c80319c'
  const valid = `00-${id}-b7ad6b7169203331-01`
  const context = { traceId: id, spanId: 'b7ad6b7169203331', isSampled: true }
  assert.deepEqual(readTraceparent(valid), context)
  assert.equal(writeTraceparent(context), valid)
  assert.deepEqual(readTraceparent(`cc-${id}-b7ad6b7169203331-03-later`), context, 'a later version may have more')
  for (const wrong of [
    undefined,
    '',
    [valid, valid],
    valid.toUpperCase(),
    `ff-${id}-b7ad6b7169203331-01`,
    `${valid}-more`,
    `00-${'0'.repeat(32)}-b7ad6b7169203331-01`,
    `00-${id}-${'0'.repeat(16)}-01`,
    `${valid}\n`,
    `cc-${id}-b7ad6b7169203331-01-${'x'.repeat(200)}`,
  ])
    assert.equal(readTraceparent(wrong), undefined, String(wrong))
})
