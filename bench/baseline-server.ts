// The baseline: a bare node:https server that returns fixed bytes, or echoes the body. run.ts starts it as a separate process.

import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { issueCertificate, makeAuthority } from '../src/serving/certificate.ts'

const body = Buffer.alloc(Number(process.argv[2] ?? 1024), 'x')
const { certificate: cert, key } = issueCertificate(makeAuthority(Date.now()), ['127.0.0.1'], Date.now())

const server = createServer({ cert, key }, (request, response) => {
  if (request.method === 'GET')
    return void response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': body.length }).end(body)
  const chunks: Buffer[] = []
  request.on('data', chunk => chunks.push(chunk))
  request.on('end', () => {
    const echo = Buffer.concat(chunks)
    response.writeHead(201, { 'Content-Type': 'application/json', 'Content-Length': echo.length }).end(echo)
  })
})
server.keepAliveTimeout = 125_000
server.listen(0, '127.0.0.1', () => console.log(`ready ${(server.address() as AddressInfo).port}`))
