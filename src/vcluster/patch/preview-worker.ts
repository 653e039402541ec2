// Worker thread that runs previews one at a time. Expressions run in a sandbox thread of its own.

import { parentPort } from 'node:worker_threads'
import { type PreviewRequest, previewReport } from './preview-report.ts'
import { openSandbox } from './sandbox.ts'

/** `output`: the status of the PatchPreview as JSON. */
export type PreviewAnswer = { readonly output: string } | { readonly isTooLarge: true } | { readonly broken: string }

/** After this time, no further round or check begins. */
const softMs = 4000
const maxOutput = 1024 * 1024

const sandbox = openSandbox({ workers: 1 })

parentPort?.on('message', (request: PreviewRequest) => {
  void answerOf(request).then(answer => parentPort?.postMessage(answer))
})

async function answerOf(request: PreviewRequest): Promise<PreviewAnswer> {
  const start = performance.now()
  try {
    // Start the sandbox first, so that the trace does not include its start.
    await sandbox.start()
    const isLate = () => performance.now() - start > softMs
    const output = JSON.stringify(await previewReport(request, { sandbox, now: Date.now, isLate }))
    return output.length > maxOutput ? { isTooLarge: true } : { output }
  } catch (error) {
    return { broken: (error as Error).message }
  }
}
