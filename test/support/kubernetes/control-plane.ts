/**
 * A real etcd and kube-apiserver on free ports of the loopback interface, with RBAC, certificates of their
 * own and the resources of the operator stack. `make kubernetes-tools` builds the programs.
 */
import { execFile, execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { KubeClient } from '../../../operator/adapters/kube-client.ts'
import { kubeconfigConnection } from '../../../operator/adapters/kube-connection.ts'
import { CRD_FOLDER } from '../../../tools/reference/custom-resources.ts'
import { afterEachFile } from '../endings.ts'
import { freePort } from '../free-port.ts'

export const TOOLS = join(import.meta.dirname, '../../../.tools')
const SCHEDULER_CONFIG = join(import.meta.dirname, '../../../deploy/helm/headroom/files/scheduler.yaml')
const START_WITHIN_MS = 120_000
const PROGRAMS = ['etcd', 'kube-apiserver', 'kubectl']

/** Null when the programs exist; otherwise the reason to skip what needs them. */
export function whyNoControlPlane(...others: readonly string[]): string | null {
  const missing = [...PROGRAMS, ...others].filter((name) => !existsSync(join(TOOLS, name)))
  if (missing.length === 0) return null
  const why = `${missing.join(', ')} not found in .tools: run \`make kubernetes-tools\` (needs Go)`
  process.stderr.write(`skipped: ${why}\n`)
  return why
}

/** Who asked for what, of accounts in namespaces of tests. */
const AUDIT_POLICY = {
  apiVersion: 'audit.k8s.io/v1',
  kind: 'Policy',
  rules: [
    { level: 'None', userGroups: ['system:masters', 'system:nodes'] },
    { level: 'Metadata', userGroups: ['system:serviceaccounts'] },
  ],
}

const open = new Set<ControlPlane>()
afterEachFile(async () => {
  await Promise.all([...open].map((plane) => plane.stop()))
})

export class ControlPlane {
  readonly folder: string
  readonly server: string
  readonly #children: ChildProcess[] = []
  readonly #clients: KubeClient[] = []
  #output = ''

  private constructor(folder: string, server: string) {
    this.folder = folder
    this.server = server
  }

  /** Returns once it is ready and serves the operator's resources. */
  static async start(): Promise<ControlPlane> {
    const folder = mkdtempSync(join(tmpdir(), 'headroom-kubernetes-'))
    const [etcd, peer, port] = [await freePort(), await freePort(), await freePort()]
    const plane = new ControlPlane(folder, `https://127.0.0.1:${port}`)
    open.add(plane)
    makeKeys(folder)
    writeFileSync(join(folder, 'audit-policy'), JSON.stringify(AUDIT_POLICY))
    const etcdUrl = `http://127.0.0.1:${etcd}`
    plane.#spawn('etcd', [
      ...[`--data-dir=${join(folder, 'etcd')}`, '--unsafe-no-fsync', '--log-level=error'],
      ...[`--listen-client-urls=${etcdUrl}`, `--advertise-client-urls=${etcdUrl}`],
      ...[`--listen-peer-urls=http://127.0.0.1:${peer}`],
      `--initial-advertise-peer-urls=http://127.0.0.1:${peer}`,
      `--initial-cluster=default=http://127.0.0.1:${peer}`,
    ])
    plane.#spawn('kube-apiserver', [
      ...[`--etcd-servers=${etcdUrl}`, `--secure-port=${port}`, '--bind-address=127.0.0.1'],
      ...[`--cert-dir=${folder}`, '--service-cluster-ip-range=10.0.0.0/24', '--allow-privileged=true'],
      ...[`--tls-cert-file=${join(folder, 'server.pem')}`],
      `--tls-private-key-file=${join(folder, 'server.key')}`,
      `--client-ca-file=${join(folder, 'ca.pem')}`,
      `--service-account-key-file=${join(folder, 'account.key')}`,
      `--service-account-signing-key-file=${join(folder, 'account.key')}`,
      '--service-account-issuer=https://kubernetes.default.svc',
      '--authorization-mode=RBAC',
      ...[`--audit-log-path=${plane.auditLog}`, `--audit-policy-file=${join(folder, 'audit-policy')}`],
      // No controller creates the accounts that pods would get.
      '--disable-admission-plugins=ServiceAccount',
    ])
    writeFileSync(plane.kubeconfig, kubeconfigText(folder, plane.server))
    await plane.#untilReady()
    return plane
  }

  get auditLog(): string {
    return join(this.folder, 'audit.log')
  }

  get kubeconfig(): string {
    return join(this.folder, 'kubeconfig')
  }

  client(): KubeClient {
    const client = new KubeClient(kubeconfigConnection(this.kubeconfig), { userAgent: 'headroom-test' })
    this.#clients.push(client)
    return client
  }

  /**
   * The output of kubectl; rejects with its errors if it fails. It does not block, because the API server may
   * call a webhook of this process meanwhile.
   */
  kubectl(args: readonly string[], input?: string): Promise<string> {
    const all = [`--kubeconfig=${this.kubeconfig}`, ...args]
    // kubectl caches what the server offers.
    const env = { ...process.env, HOME: this.folder }
    return new Promise((resolve, reject) => {
      const child = execFile(join(TOOLS, 'kubectl'), all, { env }, (error, stdout) =>
        error === null ? resolve(stdout) : reject(new Error(error.message, { cause: error })),
      )
      // It may end before it has read everything; its exit says why.
      child.stdin?.on('error', () => {})
      child.stdin?.end(input ?? '')
    })
  }

  /** The official scheduler with the configuration of the chart, and this extender. */
  async startScheduler(extenderPort: number, certificates: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, base64] of Object.entries(certificates))
      writeFileSync(join(this.folder, `scheduler-${name}`), Buffer.from(base64, 'base64'))
    const config = readFileSync(SCHEDULER_CONFIG, 'utf8')
      .replace('leaderElect: true', 'leaderElect: false')
      .replace('https://headroom-extender.NAMESPACE.svc', `https://localhost:${extenderPort}`)
      .replaceAll('/etc/headroom/certificates/', join(this.folder, 'scheduler-'))
      .replaceAll('NAMESPACE', 'default')
    const file = join(this.folder, 'scheduler.yaml')
    writeFileSync(file, `${config}clientConnection:\n  kubeconfig: ${this.kubeconfig}\n`)
    const port = await freePort()
    this.#spawn('kube-scheduler', [
      ...[`--config=${file}`, `--secure-port=${port}`, '--bind-address=127.0.0.1'],
      ...[`--authentication-kubeconfig=${this.kubeconfig}`, `--authorization-kubeconfig=${this.kubeconfig}`],
      `--cert-dir=${this.folder}`,
    ])
  }

  /** The last lines of its programs. */
  get output(): string {
    return this.#output
  }

  async stop(): Promise<void> {
    open.delete(this)
    for (const client of this.#clients) client.close()
    for (const child of this.#children.toReversed()) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null && child.signalCode === null && child.kill('SIGKILL')) await ended
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 })
  }

  #spawn(program: string, args: readonly string[]): void {
    const child = spawn(join(TOOLS, program), args, { stdio: ['ignore', 'ignore', 'pipe'] })
    child.stderr.on('data', (text: Buffer) => {
      this.#output = `${this.#output}${text.toString()}`.slice(-4_000)
    })
    this.#children.push(child)
  }

  async #untilReady(): Promise<void> {
    const until = Date.now() + START_WITHIN_MS
    const untilDone = async (args: readonly string[]): Promise<void> => {
      for (;;) {
        try {
          await this.kubectl(args)
          return
        } catch (error) {
          if (Date.now() > until)
            throw new Error(`the API server is not ready: ${this.#output}`, { cause: error })
          await delay(200)
        }
      }
    }
    await untilDone(['get', '--raw', '/readyz'])
    await untilDone(['get', 'namespace', 'default'])
    await this.kubectl(['apply', '-f', CRD_FOLDER])
    await this.kubectl(['wait', '--for=condition=Established', '--timeout=60s', '-f', CRD_FOLDER])
    // Discovery and OpenAPI follow a moment later.
    await untilDone(['get', 'clustergpupolicies,vendornodepolicies,gpunodes'])
  }
}

function makeKeys(folder: string): void {
  const at = (name: string): string => join(folder, name)
  const openssl = (...args: readonly string[]): void => {
    execFileSync('openssl', args, { stdio: 'pipe' })
  }
  const ec = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  openssl(
    ...['req', '-x509', ...ec, '-days', '2', '-subj', '/CN=test authority'],
    ...['-keyout', at('ca.key'), '-out', at('ca.pem')],
  )
  const signed = (name: string, subject: string, extensions: string): void => {
    writeFileSync(at(`${name}.ext`), extensions)
    openssl('req', ...ec, '-subj', subject, '-keyout', at(`${name}.key`), '-out', at(`${name}.csr`))
    openssl(
      ...['x509', '-req', '-in', at(`${name}.csr`), '-CA', at('ca.pem'), '-CAkey', at('ca.key')],
      ...['-CAcreateserial', '-days', '2', '-extfile', at(`${name}.ext`), '-out', at(`${name}.pem`)],
    )
  }
  const server = 'subjectAltName=IP:127.0.0.1,IP:10.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth\n'
  signed('server', '/CN=kube-apiserver', server)
  signed('admin', '/O=system:masters/CN=admin', 'extendedKeyUsage=clientAuth\n')
  openssl('genpkey', '-algorithm', 'RSA', '-pkeyopt', 'rsa_keygen_bits:2048', '-out', at('account.key'))
}

function kubeconfigText(folder: string, server: string): string {
  const data = (name: string): string => readFileSync(join(folder, name)).toString('base64')
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'test',
    contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
    clusters: [{ name: 'test', cluster: { server, 'certificate-authority-data': data('ca.pem') } }],
    users: [
      {
        name: 'admin',
        user: { 'client-certificate-data': data('admin.pem'), 'client-key-data': data('admin.key') },
      },
    ],
  })
}
