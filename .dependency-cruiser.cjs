/**
 * Which folder may import which. The chain, from left to right; each part may use what stands before it:
 *   protocol → controller/domain → scheduler, swap, metrics (never each other) → engine → series, wire, recording, api → adapters → controller.ts → cli
 * Imports of types count as well. `new URL('./worker.ts', import.meta.url)` is not seen here.
 */

const FOLDERS = ['protocol', 'controller', 'gpu-server', 'simulator', 'ui', 'cli', 'test']

const PROTOCOL = '^protocol/'
const DOMAIN = '^controller/domain/'
const PORTS = '^controller/ports/'
const OPEN_PORTS = '^controller/ports/(clock|random|bus|store|device|twin)\\.ts$'
/** The definitions of the figures: a simulation reports with the controller's own. */
const METRICS = '^controller/metrics/'
/** The port behind which a GPU server's devices sit; the simulator has a model of one. */
const DEVICE = '^gpu-server/core/(device|attempt-start)\\.ts$'
const DECIDERS = '^controller/(scheduler|swap|metrics)/'
const ENGINE = '^controller/engine/'
/** How the cluster did over time: samples the engine's views. */
const SERIES = '^controller/series/'
/** What enters a controller, noted as it comes. */
const RECORDING = '^controller/recording/'

/**
 * Simulator files that put a whole world together; only they see the controller, its memory store and the GPU
 * server's core.
 */
const COMPOSITION =
  '^simulator/(world|run|sweep|replay|live|live-cast|served-fleet|simulated-server|start-world|faults/[a-z-]+)\\.ts$'
/** Decides recordings again: composed as a world is. */
const REDECISION = '^simulator/recording/'
const COMPOSED = [
  '^controller/controller\\.ts$',
  '^controller/adapters/memory-store\\.ts$',
  '^gpu-server/core/',
]

/**
 * Files under `from` (a regular expression, without those in `except`) may import themselves and what is
 * listed, nothing else of ours.
 */
const mayImport = (name, from, allowed, except) => ({
  name,
  comment: `${from} may import only ${allowed.join(', ') || 'itself'}`,
  severity: 'error',
  from: except === undefined ? { path: from } : { path: from, pathNot: except },
  to: { path: `^(${FOLDERS.join('|')})/`, pathNot: [from, ...allowed] },
})

const mayUsePackages = (name, from, packages) => ({
  name,
  comment: `${from} decides from its arguments alone: of the packages it may use ${packages.join(', ') || 'none'}`,
  severity: 'error',
  from: { path: from },
  to: { path: 'node_modules/', pathNot: `node_modules/(${packages.join('|')})/` },
})

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    mayImport('protocol', PROTOCOL, []),
    mayImport('domain', DOMAIN, [PROTOCOL]),
    mayImport('ports', PORTS, [PROTOCOL, DOMAIN]),
    mayImport('scheduler', '^controller/scheduler/', [PROTOCOL, DOMAIN]),
    mayImport('swap', '^controller/swap/', [PROTOCOL, DOMAIN]),
    mayImport('metrics', '^controller/metrics/', [PROTOCOL, DOMAIN]),
    mayImport('engine', ENGINE, [PROTOCOL, DOMAIN, PORTS, DECIDERS]),
    mayImport('series', SERIES, [PROTOCOL, DOMAIN, PORTS, DECIDERS, ENGINE]),
    mayImport('recording', RECORDING, [PROTOCOL, DOMAIN, PORTS, ENGINE]),
    mayImport('wire', '^controller/wire/', [PROTOCOL, DOMAIN, PORTS, DECIDERS, ENGINE]),
    mayImport('api', '^controller/api/', [PROTOCOL, DOMAIN, PORTS, DECIDERS, ENGINE, SERIES]),
    mayImport('adapters', '^controller/adapters/', [
      PROTOCOL,
      DOMAIN,
      PORTS,
      DECIDERS,
      ENGINE,
      '^controller/(wire|api)/',
    ]),
    mayImport('controller', '^controller/', [PROTOCOL]),
    mayImport('gpu-server-core', '^gpu-server/core/', [PROTOCOL, DOMAIN, OPEN_PORTS]),
    mayImport('gpu-server', '^gpu-server/', [PROTOCOL, DOMAIN, OPEN_PORTS]),
    mayImport(
      'simulator',
      '^simulator/',
      [PROTOCOL, DOMAIN, OPEN_PORTS, METRICS, DEVICE],
      `${COMPOSITION}|${REDECISION}`,
    ),
    mayImport('simulator-composition', COMPOSITION, [
      '^simulator/',
      PROTOCOL,
      DOMAIN,
      OPEN_PORTS,
      METRICS,
      ...COMPOSED,
    ]),
    mayImport('simulator-recording', REDECISION, [
      '^simulator/',
      PROTOCOL,
      DOMAIN,
      PORTS,
      RECORDING,
      ...COMPOSED,
    ]),
    mayImport('ui', '^ui/', ['^controller/api/schema']),
    mayImport('cli', '^cli/', [PROTOCOL, '^controller/', '^gpu-server/', '^simulator/']),
    {
      name: 'ui-types-only',
      comment: 'The UI shares the types of the REST schema and none of the code behind them.',
      severity: 'error',
      from: { path: '^ui/' },
      to: { path: '^(protocol|controller|gpu-server|simulator|cli)/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'nothing-imports-test',
      comment: 'Product code never depends on a test or on what supports one.',
      severity: 'error',
      from: { pathNot: '^test/' },
      to: { path: '^test/' },
    },
    {
      name: 'nothing-inside-imports-the-whole',
      comment:
        'controller.ts is put together by cli and by a simulated world; nothing else inside the controller knows it.',
      severity: 'error',
      from: { path: '^controller/' },
      to: { path: '^controller/controller\\.ts$' },
    },
    mayUsePackages(
      'pure-controller-packages',
      '^(protocol|controller/(domain|scheduler|swap|metrics|engine|ports|recording|series|wire)|gpu-server/core)/',
      ['typebox'],
    ),
    mayUsePackages('simulator-packages', '^simulator/', [
      'typebox',
      'yaml',
      'csv-parse',
      'seedrandom',
      '@types/seedrandom',
      'hdr-histogram-js',
    ]),
    {
      name: 'no-cycles',
      comment: 'Two files that need each other are one idea, or the idea between them has no file yet.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'resolvable',
      comment: 'An import must lead somewhere.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'declared-packages',
      comment: 'What runs in production stands under dependencies in package.json.',
      severity: 'error',
      from: { path: '^(protocol|controller|gpu-server|simulator|cli)/' },
      to: {
        dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'],
        dependencyTypesNot: ['type-only', 'npm'],
        pathNot: '^node_modules/@types/',
      },
    },
    {
      name: 'names-say-something',
      comment: 'One idea a file, named after what it exports.',
      severity: 'error',
      from: {},
      to: { path: '(^|/)(utils?|helpers?|common|managers?|misc)(/|\\.tsx?$)', pathNot: 'node_modules/' },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
}
