// The book holds the guide alone. Links to the project's other documents, which are right in the repository and in packages, lead to the repository here.
"use strict";
(() => {
    const repository = "https://github.com/freestone-alloc/freestone/blob/main";
    const book = new URL(path_to_root || "./", location.href).href;
    // Where the page is in the repository. A server may have the book at its root, where `..` leads nowhere.
    const page = new URL(location.href.slice(book.length), "https://repository.invalid/docs/guide/");
    for (const link of document.querySelectorAll("main a[href]")) {
        const to = new URL(link.getAttribute("href"), page);
        if (to.host === page.host && !to.pathname.startsWith("/docs/guide/")) {
            link.href = repository + to.pathname.replace(/\.html$/, ".md") + to.hash;
        }
    }
})();
