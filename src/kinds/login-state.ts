// LoginState: an internal kind with one-time state of sign-in, such as device codes and ids of used tokens.

import { defineKind } from '../api/kind.ts'
import { longText, struct, text, time } from '../api/schema.ts'

export const LoginState = defineKind({
  kind: 'LoginState',
  plural: 'loginstates',
  singular: 'loginstate',
  namespaced: false,
  description:
    'LoginState keeps one step of a sign-in, so that another replica, or this one after a restart, can finish it.',
  spec: struct('The state.', {
    purpose: text('Step of the sign-in.'),
    expires: time('Time when the server deletes it.'),
    data: longText('The state as JSON, encrypted. Never shown.'),
  }),
  hidden: ['spec.data'],
  sealed: ['spec.data'],
  served: false,
  sample: { apiVersion: 'management.platform.sh/v1', kind: 'LoginState', metadata: { name: 'device-a' } },
})
