// The model-based test of sign-in as a program: `node test/prove/sign-in-child.ts SEED STEPS` prints one line of JSON.

import { proveSignIn } from './sign-in/run.ts'

const [seed = '', steps = '200'] = process.argv.slice(2)
console.log(JSON.stringify(await proveSignIn(seed, Number(steps))))
