// A task of a fidelity run: reports over its control socket when it is busy. `node worker.mjs NOTE busy:MS
// idle:MS …`; NOTE is the file to which it writes that it runs.
import { writeFileSync } from 'node:fs'
import { createConnection } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

const [note, ...phases] = process.argv.slice(2)
const path = process.env.HEADROOM_SOCKET
const socket = createConnection(path)
socket.on('error', () => {})
socket.resume()
writeFileSync(note, path)
// Its start-up time is part of its time: a task begins with its process.
let behindMs = performance.now()
for (const phase of phases) {
  const [kind, ms] = phase.split(':')
  socket.write(`${JSON.stringify({ busy: kind === 'busy' })}\n`)
  await wait(Math.max(0, Number(ms) - behindMs))
  behindMs = 0
}
process.exit(0)
