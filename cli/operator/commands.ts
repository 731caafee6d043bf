/** `headroom operator`: the components of the operator stack. Their actions are loaded when called. */
import { Option, type Command } from 'commander'
import { MAX_LEASE_MS, MIN_LEASE_MS } from '../../controller/ports/leadership.ts'
import { DEFAULT_ADMISSION } from '../../operator/admission/admission-options.ts'
import { MAX_HOST_MIB } from '../../protocol/limits.ts'
import { MAX_PERCENT } from '../../operator/contract/percent.ts'
import { mib, timeWithin, whole } from '../command/option-values.ts'
import { calls, repeatable, withExamples, type SetExit } from '../command/command-shape.ts'

const ADMIN = '0.0.0.0:8081'

export function addOperatorCommands(program: Command, setExit: SetExit): void {
  const operator = program
    .command('operator')
    .description('components of the operator stack for Kubernetes; the Helm chart runs them')
  withExamples(
    inCluster(
      operator
        .command('admission')
        .description('serve the webhooks that check and change pods with the label gpu-runtime'),
    )
      .option('--listen <address:port>', 'where the API server calls, over HTTPS', '0.0.0.0:8443')
      .option('--admin <address:port>', 'where /metrics, /livez and /readyz are', ADMIN)
      .option('--secret <name>', 'Secret that keeps the certificates', 'headroom-admission')
      .option('--service <name>', 'Service by which the API server calls', 'headroom-admission')
      .option('--configuration <name>', 'name of both webhook configurations', 'headroom-admission')
      .option('--dns-name <name>', 'further name in the certificate; may be repeated', repeatable, [])
      .addOption(
        new Option('--swap-memory <how>', 'memory of pods that may be swapped out')
          .choices(['raise', 'require', 'ignore'])
          .default(DEFAULT_ADMISSION.swapMemory),
      )
      .option(
        '--helper-image <image>',
        'with the helper through which probes of swappable pods run; else pods with liveness or startup ' +
          'probes are not swapped',
      )
      .option('--runtime-class <name>', 'RuntimeClass of GPU pods that name none')
      .option('--observe', 'change and refuse nothing; warnings say what would be refused'),
    'headroom operator admission --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./admission.ts'), 'admission'))
  addRun(operator, setExit)
  addAgent(operator, setExit)
  addUninstall(operator, setExit)
}

function addAgent(operator: Command, setExit: SetExit): void {
  withExamples(
    operator
      .command('agent')
      .description('move VRAM of pods on this node as the operator orders; it needs no right in the cluster')
      .option('--operator <host:port>', 'where the operator listens for agents')
      .option('--certificates <folder>', 'with ca.crt, tls.crt and tls.key')
      .option('--token <file>', 'of its ServiceAccount, for the audience headroom: it names the node')
      .requiredOption('--state <folder>', 'where it notes which pods are out; it must outlive the agent')
      .option('--node <name>', 'of this node; else NODE_NAME')
      .option('--cgroups <folder>', 'hierarchy of cgroups of the host', '/sys/fs/cgroup')
      .addOption(
        new Option('--device <kind>', 'GPUs of this node')
          .choices(['auto', 'nvidia', 'process'])
          .default('auto'),
      )
      .option('--inventory <file>', 'declares the GPUs of --device process')
      .option(
        '--host-swap-mib <size>',
        'host memory for pods that are out; else half of it, or as the inventory says',
        mib(0, MAX_HOST_MIB),
      )
      .addOption(
        new Option('--idle-after <time>', 'a pod without measured use for this long is idle')
          .argParser(timeWithin(1_000, 3_600_000))
          .default(5_000, '5s'),
      )
      .option('--admin <address:port>', 'where /metrics, /livez and /readyz are', ADMIN)
      .option('--release', 'bring every pod back, then end: before the agent leaves the node for good')
      .option('--stay', 'with --release: do not end; /readyz is positive once every pod is back'),
    'headroom operator agent --operator headroom-extender.headroom.svc:8444 ' +
      '--certificates /etc/headroom/certificates --token /etc/headroom/token/token --state /var/lib/headroom',
  ).action(calls(setExit, () => import('./agent.ts'), 'agent'))
}

function addUninstall(operator: Command, setExit: SetExit): void {
  withExamples(
    inCluster(
      operator
        .command('uninstall')
        .description('before the stack is removed: bring all pods into VRAM, free those that wait'),
    )
      .option('--agents <name>', 'DaemonSet of the agents', 'headroom-agent')
      .option('--configuration <name>', 'name of the admission objects to remove', 'headroom-admission')
      .addOption(
        new Option('--wait <time>', 'for pods that are out; then it stops, and says which nodes are left')
          .argParser(timeWithin(1_000, 86_400_000))
          .default(240_000, '240s'),
      ),
    'headroom operator uninstall --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./uninstall.ts'), 'uninstall'))
}

function addRun(operator: Command, setExit: SetExit): void {
  withExamples(
    inCluster(
      operator
        .command('run')
        .description('place pods: one replica leads, and answers the scheduler of Kubernetes'),
    )
      .option('--listen <address:port>', 'where the scheduler asks, over HTTPS', '0.0.0.0:8443')
      .option('--agents <address:port>', 'where agents report, over HTTPS', '0.0.0.0:8444')
      .option('--admin <address:port>', 'where /metrics, /livez and /readyz are', ADMIN)
      .option('--name <name>', 'of this replica; else POD_NAME, else the name of the host')
      .option('--lease-name <name>', 'Lease by which one replica leads', 'headroom-operator')
      .addOption(
        new Option('--lease <time>', 'silence after which another replica leads')
          .argParser(timeWithin(MIN_LEASE_MS, MAX_LEASE_MS))
          .default(15_000, '15s'),
      )
      .option('--overcommit <percent>', 'of nodes that no policy or label names', whole(0, MAX_PERCENT), 0)
      .addOption(
        new Option(
          '--probe <time>',
          'after which a pod that is out gets the GPU, to show whether it has work',
        )
          .argParser(timeWithin(1_000, 86_400_000))
          .default(60_000, '60s'),
      )
      .option('--observe', 'decide on pods and report it, and leave them as they are')
      .option('--service <name>', 'Service by which the scheduler asks', 'headroom-extender')
      .option('--secret <name>', 'Secret that keeps the certificates', 'headroom-extender')
      .option(
        '--scheduler-secret <name>',
        'Secret for the certificate with which the scheduler calls',
        'headroom-scheduler',
      )
      .option('--agent-account <name>', 'ServiceAccount of the agents', 'headroom-agent')
      .option('--agent-secret <name>', 'Secret for the certificate with which agents call', 'headroom-agent')
      .option('--dns-name <name>', 'further name in the certificate; may be repeated', repeatable, []),
    'headroom operator run --namespace headroom --kubeconfig ~/.kube/config',
  ).action(calls(setExit, () => import('./run.ts'), 'run'))
}

function inCluster(command: Command): Command {
  return command
    .option('--kubeconfig <file>', 'outside the cluster: how to reach it; else the ServiceAccount of the pod')
    .option('--context <name>', 'context of the kubeconfig; else its current one')
    .option('--namespace <name>', 'namespace of the stack; else POD_NAMESPACE')
}
