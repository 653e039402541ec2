// Sends a request whose body arrives in two parts, so that a test can change permissions in between.

import { request } from 'node:https'
import { must, type Person, type Stage } from './people.ts'

/** Sends the first byte of the body, waits for `meanwhile`, and sends the rest, over HTTP/1.1. Returns the status code. */
export async function sendLate(
  stage: Stage,
  who: Person,
  method: string,
  path: string,
  body: object,
  meanwhile: () => Promise<unknown>,
): Promise<number> {
  const text = JSON.stringify(body)
  const sent = request(`${stage.server.https}/kubernetes/management${path}`, {
    method,
    ca: stage.server.ca,
    headers: {
      authorization: `Bearer ${who.key}`,
      'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
      'content-length': Buffer.byteLength(text),
      expect: '100-continue',
    },
  })
  const answered = new Promise<number>((resolve, reject) => {
    sent.on('response', response => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
  })
  await new Promise(resolve => sent.on('continue', resolve))
  sent.write(text.slice(0, 1))
  // The server answers this one after it read the headers above, so that request was authorized before.
  await must(who.ask('GET', '/version'))
  await meanwhile()
  sent.end(text.slice(1))
  return answered
}
