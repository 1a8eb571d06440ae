# Writes PAGE: TEMPLATE with the style and the script that FOLDER holds in their places.
cmake_minimum_required(VERSION 3.25)
file(READ "${FOLDER}/page.css" STYLE)
file(READ "${FOLDER}/page.js" SCRIPT)
configure_file("${TEMPLATE}" "${PAGE}" @ONLY)
