// Reads the form of a sign-in page, or a small JSON object.

import { badRequest, unsupportedMediaType } from '../../api/errors.ts'
import { isObject } from '../../api/object.ts'
import type { Exchange } from '../../serving/exchange.ts'
import { mediaType, readBytes } from '../body.ts'

const maxBytes = 32 * 1024
const formType = 'application/x-www-form-urlencoded'

export async function readForm(exchange: Exchange): Promise<URLSearchParams> {
  if (mediaType(exchange.request) !== formType) throw unsupportedMediaType([formType])
  const form = new URLSearchParams((await readBytes(exchange, maxBytes)).toString('utf8'))
  // Others may read the other value of a field that is sent twice.
  if (new Set(form.keys()).size !== [...form.keys()].length) throw badRequest('a field of the form is sent twice')
  return form
}

/** The text fields of a JSON object. */
export async function readFields(exchange: Exchange): Promise<{ readonly [field: string]: string | undefined }> {
  if (mediaType(exchange.request) !== 'application/json') throw unsupportedMediaType(['application/json'])
  let value: unknown
  try {
    value = JSON.parse((await readBytes(exchange, maxBytes)).toString('utf8'))
  } catch (error) {
    if (error instanceof SyntaxError) throw badRequest('the body is not JSON')
    throw error
  }
  if (!isObject(value)) throw badRequest('the body must be a JSON object')
  return Object.fromEntries(Object.entries(value).filter(([, one]) => typeof one === 'string')) as {
    [field: string]: string
  }
}
