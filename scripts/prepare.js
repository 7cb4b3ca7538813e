/**
 * What npm runs at the end of an install in a checkout: builds the dashboard. Where the tools for it are left
 * out (`--omit=dev`), it says so and the install goes on. Plain JavaScript, since without them there is no
 * pinned Node either, and an older one must get as far as this.
 */
import { existsSync } from 'node:fs';

if (existsSync(new URL('../node_modules/vite', import.meta.url))) await import('./dashboard.ts');
else console.error('The dashboard is not built: that needs the devDependencies. All else works without it.');
