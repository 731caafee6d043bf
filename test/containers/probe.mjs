// The task of a submitter who wants what is not his: walks through everything that it can reach, and prints
// what it could read as JSON.
import { closeSync, openSync, readFileSync, readSync, readdirSync, lstatSync } from 'node:fs'
import { connect } from 'node:net'
const found = { secrets: [], closedWork: [], sockets: [], own: false, uid: process.getuid(), status: '' }
const canary = ['CANARY', 'of', 'another'].join('-')
const seed = /\bSU[A-Z2-7]{56}\b/
const token = new RegExp('headroom' + '_[a-z0-9]{12}_[A-Za-z0-9_-]{40,}')
const skip =
  /^\/(sys|proc\/(sys|irq|bus|acpi|kcore|kmsg|kallsyms|sysrq))|\/proc\/(self|thread-self|\d+\/(task|map_files|attr|net))(\/|$)/
const mine = new Set([String(process.pid), String(process.ppid)])
let left = 200000
function look(path) {
  let size = 0
  try {
    const fd = openSync(path, 'r')
    const bytes = Buffer.alloc(65536)
    try {
      size = readSync(fd, bytes, 0, bytes.length, 0)
    } finally {
      closeSync(fd)
    }
    const text = bytes.toString('latin1', 0, size)
    if (text.includes(canary) || seed.test(text) || token.test(text)) found.secrets.push(path)
    if (/^\/proc\/\d+\/environ$/.test(path) && size > 0 && !mine.has(path.split('/')[2]))
      found.secrets.push(path)
    if (/\/(journal|headroom\.db.*|admin\.token|[^/]*\.nk)$/.test(path)) found.secrets.push(path)
  } catch {}
}
function walk(path, depth) {
  if (skip.test(path) || depth > 12 || left-- < 0) return
  let about
  try {
    about = lstatSync(path)
  } catch {
    return
  }
  if (about.isSocket() && path !== process.env.HEADROOM_SOCKET) found.sockets.push(path)
  if (about.isFile()) look(path)
  const isProcess = /^\/proc\/\d+\/(root|cwd)$/.test(path) && !mine.has(path.split('/')[2])
  if (!about.isDirectory() && !isProcess) return
  try {
    const names = readdirSync(path + '/')
    if (isProcess && path.split('/')[2] !== '1') found.secrets.push(path)
    for (const name of names)
      if (!(isProcess && name === 'proc')) walk((path === '/' ? '' : path) + '/' + name, depth + 1)
  } catch {}
}
walk('/', 0)
for (const path of process.argv.slice(2)) look(path)
const tries = found.sockets.map(
  (path) =>
    new Promise((done) =>
      connect(path)
        .on('connect', () => done(path))
        .on('error', () => done(null)),
    ),
)
found.sockets = (await Promise.all(tries)).filter((path) => path !== null)
found.own =
  readFileSync('/proc/self/environ', 'latin1').includes('HEADROOM_TASK_ID') && readdirSync('.').length === 0
found.status = readFileSync('/proc/self/status', 'utf8')
  .match(/^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Groups):.*$/gm)
  .join('; ')
delete found.closedWork
console.log(JSON.stringify(found))
