/**
 * The limit of an HTTP response here: node:http, the body read and parsed, the same bytes returned. Its port
 * is sent to the parent.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

const answers = JSON.parse(process.argv[2] ?? '{}') as { readonly get: string; readonly post: string }

const server = createServer((request, response) => {
  if (request.method !== 'POST') return answer(response, 200, answers.get)
  readBody(request, (text) => {
    JSON.parse(text)
    answer(response, 201, answers.post)
  })
})
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port))
process.once('disconnect', () => process.exit(0))

function readBody(request: IncomingMessage, done: (text: string) => void): void {
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.once('end', () => done(Buffer.concat(chunks).toString()))
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}
