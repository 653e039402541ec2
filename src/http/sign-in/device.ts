// Sign-in of machines without a browser: the device flow of RFC 8628, with this server as the authorization server.

import { tooManyRequests } from '../../api/errors.ts'
import type { JsonObject } from '../../api/object.ts'
import { checkConfirmation, confirmationFields, deviceKey, withSession } from './confirmation.ts'
import {
  addressOf,
  machineName,
  note,
  ownUrl,
  type Route,
  requireSession,
  type SignedInCaller,
  type SignInContext,
  SignInError,
  secret,
  shownAddress,
} from './context.ts'
import { html } from './html.ts'
import { json, page } from './page.ts'
import { readFields, readForm } from './read-form.ts'

const codeFor = 600
const interval = 5
const maxCodes = 1000
/** No vowels, so that no words appear, and no characters that look alike. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ'

/** `device` state: by user code. `device-secret` state: by device code, names the user code. */
export const deviceCodeRoute: Route = async (context, exchange) => {
  if (context.providers.list().length === 0)
    return json(400, {
      error: 'invalid_request',
      error_description: 'no identity provider is configured on this server',
    })
  const uri = `${ownUrl(context, exchange)}/auth/device`
  const { machine } = await readFields(exchange)
  const deviceCode = secret(context)
  const userCode = userCodeOf(context)
  const data: JsonObject = {
    status: 'pending',
    machine: machineName(machine),
    address: shownAddress(context, exchange),
  }
  await context.states.put('device', userCode, { data, ttl: codeFor, max: maxCodes })
  const polled = { userCode, last: 0 }
  await context.states.put('device-secret', deviceCode, { data: polled, ttl: codeFor, max: maxCodes })
  return json(200, {
    device_code: deviceCode,
    user_code: userCode,
    verification_uri: uri,
    verification_uri_complete: `${uri}?user_code=${userCode}`,
    expires_in: codeFor,
    interval,
  })
}

function userCodeOf({ random }: SignInContext): string {
  let code = ''
  // 240 is a multiple of 20, so every letter is equally likely.
  while (code.length < 8) for (const byte of random(16)) if (byte < 240 && code.length < 8) code += letters[byte % 20]
  return `${code.slice(0, 4)}-${code.slice(4)}`
}

const normal = (typed: string) => {
  const plain = typed.toUpperCase().replace(/[^A-Z]/g, '')
  return `${plain.slice(0, 4)}-${plain.slice(4)}`
}

const warning = html`<p class="warn">Enter a code only if you started <code>platform login --device</code> yourself, just now.
If somebody sent you a code or a link, they want to sign in as you.</p>`

export const deviceRoute: Route = (context, exchange) =>
  withSession(context, exchange, session => {
    const typed = exchange.query.get('user_code')
    if (!typed)
      return page({
        title: 'Sign in another machine',
        body: html`${warning}<form method="get" action="device" class="stack">
<div><label for="user_code">Code</label><input class="code" id="user_code" name="user_code" autocomplete="off" required maxlength="12"></div>
<button>Continue</button></form>`,
      })
    const { userCode, data } = found(context, exchange, session, typed)
    return page({
      title: 'Sign in this machine?',
      body: html`<dl><dt>You</dt><dd>${session.caller.username}</dd><dt>Machine</dt><dd>${String(data['machine'])}</dd>
<dt>Address</dt><dd>${String(data['address'])}</dd><dt>Code</dt><dd>${userCode}</dd></dl>${warning}
<form method="post" action="device" class="stack">${confirmationFields(context, session, { user_code: userCode })}
<button name="decision" value="approve">Sign in</button><button class="plain" name="decision" value="deny">Deny</button></form>`,
    })
  })

/** Wrong codes count as guesses, by address and by user. */
function found(context: SignInContext, exchange: Parameters<Route>[1], { caller }: SignedInCaller, typed: string) {
  const { guard } = context
  const sources = [addressOf(context, exchange), `device codes of ${caller.username}`]
  if (!sources.every(source => guard.mayTry(source))) throw tooManyRequests()
  const userCode = normal(typed)
  const data = context.states.get('device', userCode)
  if (data?.['status'] === 'pending') return { userCode, data }
  for (const source of sources) guard.failed(source)
  throw new SignInError(404, {
    reason: 'UnknownDeviceCode',
    title: 'Unknown code',
    advice: 'It is mistyped, has expired, or was used already. Check it, or start again.',
    link: { href: 'device', text: 'Enter another code' },
  })
}

export const decideDeviceRoute: Route = async (context, exchange) => {
  const session = await requireSession(context, exchange)
  const form = await readForm(exchange)
  const { userCode, data } = found(context, exchange, session, form.get('user_code') ?? '')
  checkConfirmation(context, session, form, { user_code: userCode })
  const isApproved = form.get('decision') === 'approve'
  const next = {
    ...data,
    status: isApproved ? 'approved' : 'denied',
    ...(isApproved ? { keyUid: session.caller.keyUid ?? '' } : {}),
  }
  const isDone = await context.states.replace('device', userCode, data, next)
  const result = isApproved ? 'DeviceApproved' : 'DeviceDenied'
  note(exchange, { user: session.caller.username, machine: String(data['machine']), result })
  if (!isDone)
    throw new SignInError(409, { reason: 'Conflict', title: 'The code was used already', advice: 'Start again.' })
  return page({
    title: isApproved ? 'The machine is signed in' : 'Denied',
    body: html`<p>${isApproved ? 'Return to the terminal.' : 'The machine gets no access.'} You can close this window.</p>`,
  })
}

export const deviceTokenRoute: Route = async (context, exchange) => {
  const { device_code: deviceCode = '' } = await readFields(exchange)
  const polled = context.states.get('device-secret', deviceCode)
  if (!polled) return refused('expired_token', 'the code has expired or was used already')
  const isEarly = context.now() - Number(polled['last']) < interval * 1000 - 500
  if (
    !(await context.states.replace('device-secret', deviceCode, polled, { ...polled, last: context.now() })) ||
    isEarly
  )
    return refused('slow_down', `poll every ${interval} seconds`)
  const userCode = String(polled['userCode'])
  const data = context.states.get('device', userCode)
  if (data?.['status'] === 'pending') return refused('authorization_pending', 'nobody has confirmed the code yet')
  const taken = data && (await context.states.take('device', userCode))
  await context.states.take('device-secret', deviceCode)
  if (!taken) return refused('expired_token', 'the code has expired or was used already')
  if (taken['status'] !== 'approved') return refused('access_denied', 'the sign-in was denied')
  return json(200, await deviceKey(context, exchange, taken))
}

const refused = (error: string, description: string) => json(400, { error, error_description: description })
