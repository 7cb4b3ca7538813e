import { defineConfig } from 'vite';

/** Where `npm run dashboard:dev` finds a service to ask. */
const SERVICE = process.env['AFTERWORD_ADMIN_URL'] ?? 'http://127.0.0.1:8081';

export default defineConfig({
  root: import.meta.dirname,
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    target: 'es2023',
    outDir: 'dist',
    assetsInlineLimit: 0, // what is inlined would need an exception in the content security policy
    modulePreload: { polyfill: false },
  },
  server: {
    // With the host that the page is of: the service refuses what a page of another asks for.
    proxy: Object.fromEntries(
      ['/api', '/session', '/metrics', '/healthz', '/readyz'].map(path => [path, { target: SERVICE }]),
    ),
  },
});
