/**
 * The program of a submitter's task that searches for data of other parties and tasks. It prints a report as
 * one line of JSON. It runs in an image of the GPU server, so it imports nothing of this repository. `told`
 * (globalThis) contains paths that root of the host sees, so that a closed folder with a known path is also
 * tried.
 */
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  lstatSync,
  openSync,
  readFileSync,
  readSync,
  readdirSync,
  readlinkSync,
  statSync,
} from 'node:fs'
import { Resolver } from 'node:dns/promises'
import { createRequire } from 'node:module'
import { connect } from 'node:net'

const { canary, files, sockets, hosts, ports } = globalThis.told
/** In the environment of each process of this task. */
const own = process.env.HEADROOM_TASK_ID ?? 'no task'
const seed = /\bSU[A-Z2-7]{56}\b/
const token = /headroom_[a-z0-9]{12}_[A-Za-z0-9_-]{40,}/
const MAX_DEPTH = 12
const READ_BYTES = 65_536
const CONNECT_WITHIN_MS = 2_000
const ENTRIES_OF_PROCESS = ['environ', 'maps', 'fd', 'cwd', 'root']
/** Device memory and kernel logs may block a reader; processes have a separate search. */
const LEFT_OUT = /^\/(sys|proc)(\/|$)/

const report = {
  uid: process.getuid(),
  status: (
    readFileSync('/proc/self/status', 'utf8').match(/^(Cap(Prm|Eff|Bnd)|NoNewPrivs|Groups):.*$/gm) ?? []
  ).join('; '),
  environment: Object.keys(process.env),
  inherited: readdirSync('/proc/self/fd').flatMap(
    (fd) => attempt(() => `${fd} ${readlinkSync(`/proc/self/fd/${fd}`)}`) ?? [],
  ),
  isWorkFolderEmpty: (attempt(() => readdirSync('.')) ?? ['closed']).length === 0,
  triedProcesses: 0,
  rights: [],
  secrets: [],
  files: [],
  processes: [],
  sockets: [],
  network: [],
  api: [],
  broker: {},
}
const seeds = new Map()

gainRights()
search('/', 0)
searchProcesses()
await searchSockets()
const addresses = await addressesOf(hosts)
await searchNetwork()
report.broker = await tryBroker()
console.log(JSON.stringify(report))

/**
 * The container's /proc is below the task's /proc, and a user namespace gives capabilities that must not
 * apply to other processes.
 */
function gainRights() {
  const comm = attempt(() => readFileSync('/proc/1/comm', 'utf8'))
  const isInOwnNamespace = comm?.startsWith('headroom-keeper') ?? false
  if (isInOwnNamespace && spawnSync('busybox', ['umount', '/proc']).status === 0)
    report.rights.push('umount /proc')
  if (report.uid !== 0 && attempt(() => process.setuid(0)) !== null) report.rights.push('setuid 0')
  const script = 'busybox umount /proc; cat /proc/[0-9]*/environ; cat /proc/[0-9]*/root/etc/headroom/*/*'
  const { stdout } = spawnSync('busybox', ['unshare', '-Urm', 'sh', '-c', script], { encoding: 'latin1' })
  if (isSecret(stdout)) report.rights.push('user namespace')
}

function search(path, depth) {
  if (LEFT_OUT.test(path) || depth > MAX_DEPTH) return
  const about = attempt(() => lstatSync(path))
  if (about?.isSocket() && path !== process.env.HEADROOM_SOCKET) sockets.push({ name: path, paths: [path] })
  if (about?.isFile() && isSecret(textOf(path), path)) report.secrets.push(path)
  if (!about?.isDirectory()) return
  for (const name of attempt(() => readdirSync(path)) ?? [])
    search(`${path === '/' ? '' : path}/${name}`, depth + 1)
}

function searchProcesses() {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  report.triedProcesses = processes.length
  for (const pid of processes) {
    const environment = textOf(`/proc/${pid}/environ`)
    if (environment?.includes(own)) continue
    const open = ENTRIES_OF_PROCESS.filter((entry) => isOpen(`/proc/${pid}/${entry}`))
    if (open.length > 0) report.processes.push(`${pid}: ${open.join(' ')}`)
    if (isSecret(environment)) report.secrets.push(`/proc/${pid}/environ`)
    for (const fd of attempt(() => readdirSync(`/proc/${pid}/fd`)) ?? []) {
      if (isSecret(textOf(`/proc/${pid}/fd/${fd}`))) report.secrets.push(`/proc/${pid}/fd/${fd}`)
    }
  }
  for (const { name, paths } of files) {
    if (everywhere(paths).some((path) => isSecret(textOf(path), name) || textOf(path) !== null))
      report.files.push(name)
  }
}

async function searchSockets() {
  const abstract = (attempt(() => readFileSync('/proc/net/unix', 'utf8')) ?? '').matchAll(/ @(\S+)$/gm)
  const all = [...sockets, ...[...abstract].map(([, name]) => ({ name: `@${name}`, paths: [`\0${name}`] }))]
  for (const { name, paths } of all) {
    for (const path of everywhere(paths)) {
      if (!(await connects({ path }))) continue
      report.sockets.push(name)
      break
    }
  }
}

async function searchNetwork() {
  const local = [['itself', '127.0.0.1'], ...gateways().map((address) => ['host', address])]
  for (const [name, address] of [...addresses, ...local]) {
    for (const port of ports) {
      if (!(await connects({ host: address, port }))) continue
      report.network.push(`${name}:${port}`)
      const url = `http://${address}:${port}/api/v1/tasks`
      const answer = await fetch(url, { signal: AbortSignal.timeout(CONNECT_WITHIN_MS) }).catch(() => null)
      if (answer !== null) report.api.push(`${name}:${port} ${answer.status}`)
    }
  }
}

/** The broker's response to no key, to an unknown key, and to each key that was found. */
async function tryBroker() {
  const load = createRequire('/app/')
  const attempts = {
    none: [],
    unknown: [
      load('@nats-io/transport-node').nkeyAuthenticator(load('@nats-io/nkeys').createUser().getSeed()),
    ],
  }
  for (const [name, text] of seeds)
    attempts[name] = [load('@nats-io/transport-node').nkeyAuthenticator(new TextEncoder().encode(text))]
  const answers = {}
  for (const [name, [authenticator]] of Object.entries(attempts)) {
    const options = {
      servers: `nats://${new Map(addresses).get('nats')}:4222`,
      reconnect: false,
      timeout: CONNECT_WITHIN_MS,
      ...(authenticator ? { authenticator } : {}),
    }
    try {
      const connection = await load('@nats-io/transport-node').connect(options)
      answers[name] = 'connected'
      await connection.close()
    } catch (error) {
      answers[name] = String(error)
    }
  }
  return answers
}

function isSecret(text, name = 'a process') {
  if (text === null) return false
  const [found] = seed.exec(text) ?? []
  if (found !== undefined && ![...seeds.values()].includes(found)) seeds.set(name, found)
  return text.includes(canary) || found !== undefined || token.test(text)
}

/** In this container, and in every other container whose root a host process uses. */
function everywhere(paths) {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return paths.flatMap((path) =>
    path.startsWith('\0') ? [path] : [path, ...processes.map((pid) => `/proc/${pid}/root${path}`)],
  )
}

/** Of services; a service that has ended has none, and no other process may answer for it. */
async function addressesOf(names) {
  const resolver = new Resolver({ timeout: CONNECT_WITHIN_MS, tries: 1 })
  const found = await Promise.all(names.map((name) => resolver.resolve4(name).catch(() => [])))
  return names.flatMap((name, index) => found[index].map((address) => [name, address]))
}

function gateways() {
  const routes = attempt(() => readFileSync('/proc/net/route', 'utf8')) ?? ''
  return [...routes.matchAll(/^\S+\s+00000000\s+([0-9A-F]{8})/gm)].map(([, hex]) =>
    Buffer.from(hex, 'hex').reverse().join('.'),
  )
}

/** An entry of an ended process can be opened and is empty. */
function isOpen(path) {
  return attempt(() => readdirSync(`${path}/`)) !== null || (textOf(path) ?? '') !== ''
}

/** Returns the beginning of a file; null when it cannot be opened, or is not a file: a pipe would block. */
function textOf(path) {
  const fd = attempt(() => (statSync(path).isFile() ? openSync(path, 'r') : null))
  if (fd === null) return null
  const bytes = Buffer.alloc(READ_BYTES)
  const size = attempt(() => readSync(fd, bytes, 0, bytes.length, 0)) ?? 0
  closeSync(fd)
  return bytes.toString('latin1', 0, size)
}

function connects(to) {
  return new Promise((resolve) => {
    const socket = connect(to)
    const settle = (isOpen) => {
      socket.destroy()
      resolve(isOpen)
    }
    socket.setTimeout(CONNECT_WITHIN_MS, () => settle(false))
    socket.on('connect', () => settle(true)).on('error', () => settle(false))
  })
}

function attempt(look) {
  try {
    return look()
  } catch {
    return null
  }
}
